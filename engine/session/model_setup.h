// What every session begins with: the model file, its network as it is asked for, and how pictures
// become inputs for given weights.

#pragma once

#include <optional>
#include <string>

#include "engine/session/session_observer.h"
#include "engine/train/checkpoints/preparation.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

// Reads a model file on every rank; its warnings are rank 0's. AgreedError where a rank has another
// file. A name that ends in .safetensors is that of a checkpoint, which has its model in it.
[[nodiscard]] partitioner::ModelFile load_model(const std::string& path,
                                                const Communicator& communicator,
                                                const SessionObserver& observer);

// The same network for pictures of another size, "HxW". Throws InputError where layers do not fit
// it.
[[nodiscard]] partitioner::Network resized(const partitioner::Network& network,
                                           const std::string& size);

// The network with the layers frozen up to the given one for good, whatever others are in the first
// steps, or "none" at all; empty: those that the model file says. Throws InputError where there is
// no such layer, or where nothing is left to learn.
[[nodiscard]] partitioner::Network frozen(partitioner::Network network, const std::string& layer);

// Throws InputError where the network of that model file has nothing to learn by.
void expect_loss(const partitioner::Network& network, const std::string& model);

// The file of weights that is meant: of a run folder, which rank 0 sees, the best weights, or those
// of its newest checkpoint where nothing was tested; any other name as it is. All ranks call this
// together; AgreedError where a folder has neither.
[[nodiscard]] std::string weights_file(const std::string& path, const Communicator& communicator);

// What load_model() is to read: the model file, or where none is given the weights, which have it
// in them. Throws AgreedError where these are a Darknet file, which has not.
[[nodiscard]] std::string model_or_that_of(const std::string& weights, const std::string& model);

// Warns where a checkpoint was trained for another network than the model file's, though its
// weights fit, or for other outputs, with other anchors for instance. Other files of weights do not
// say it. All ranks call this together.
void warn_of_other_network(const std::string& weights,
                           const partitioner::ModelFile& model,
                           const Communicator& communicator,
                           const SessionObserver& observer);

// How pictures become inputs for the weights in a file, which keeps `stored`: values that are not
// given are taken from there, and a warning says what is then still another way than in training.
[[nodiscard]] RenderingRules rules_for_weights(const std::string& weights,
                                               const std::optional<Preparation>& stored,
                                               const partitioner::ModelFile& model,
                                               const PixelConvention& given,
                                               const Communicator& communicator,
                                               const SessionObserver& observer);

}  // namespace tessera::engine
