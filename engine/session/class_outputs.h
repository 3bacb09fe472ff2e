// Whether a network's last map fits the classes of a data set: one value of an image for each
// class. A map of several cells for each class is a mistake (a forgotten [avgpool]), as is a class
// without an output; outputs to spare can be meant, for classes that are still to come. A head of a
// detector has to tell as many classes apart as there are, or more.

#pragma once

#include <optional>
#include <string>

#include "engine/data/dataset.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// Throws InputError where a class has no output, or the loss is over several cells of a class; the
// message names the layer of the model file to change, and how. `path` is the data set's.
void expect_output_for_each_class(const partitioner::Network& network,
                                  const std::string& model,
                                  const Dataset& dataset,
                                  const std::string& path);

// What to say where there are more outputs than classes, in words that follow the data set's path;
// nothing where there are not.
[[nodiscard]] std::optional<std::string> spare_outputs(const partitioner::Network& network,
                                                       const std::string& model,
                                                       const Dataset& dataset,
                                                       const std::string& path);

// The layer with weights that says how many channels a map has; kImage where several layers do.
// What lies between passes channels on.
[[nodiscard]] int layer_of_channels(const partitioner::Network& network, int map);

// The layer with weights that has to have other channels for a head to tell so many classes apart,
// and how many; kImage where no layer alone does.
struct ClassLayer {
  int layer = partitioner::kImage;
  Index channels = 0;
};
[[nodiscard]] ClassLayer class_layer(const partitioner::Network& network, int head, Index classes);

// The command that makes a model file fit a data set, for messages.
[[nodiscard]] std::string adapt_command(const std::string& model, const std::string& data);

// The data set at `path`, for a network that ends in a loss. Throws InputError as
// expect_output_for_each_class() does; what is wrong with single pictures is left to its
// problems().
[[nodiscard]] Dataset open_labelled(const std::string& path,
                                    Split split,
                                    const partitioner::Network& network,
                                    const std::string& model,
                                    bool allow_unlabelled = false);

// What a network's losses judge it by: boxes where one of them is a head's.
[[nodiscard]] TargetKind target_kind(const partitioner::Network& network);

// The second half of that, for a data set that is listed.
void expect_outputs(const partitioner::Network& network,
                    const std::string& model,
                    const Dataset& dataset,
                    const std::string& path);

}  // namespace tessera::engine
