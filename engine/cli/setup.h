// What several subcommands begin with: reading the model, choosing the partition.

#pragma once

#include <optional>
#include <string>

#include "engine/cli/commands.h"
#include "engine/data/dataset.h"
#include "engine/train/preparation.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/report/plan_report.h"

namespace tessera::engine {

// Reads a model file on every rank and says its warnings on rank 0. AgreedError where a rank has
// another file.
[[nodiscard]] partitioner::ModelFile load_model(const std::string& path,
                                                const Communicator& communicator);

// The same network for pictures of another size, "HxW". Throws InputError where layers do not fit
// it.
[[nodiscard]] partitioner::Network resized(const partitioner::Network& network,
                                           const std::string& size);

// The network with the layers frozen up to the one that --freeze names, or "none"; empty: those
// that the model file says. Throws InputError where there is no such layer, or where nothing is
// left to learn.
[[nodiscard]] partitioner::Network frozen(partitioner::Network network, const std::string& layer);

// Replaces kernels of the partition that take more scratch than the choice allows.
void limit_workspace(const partitioner::Network& network,
                     const PartitionChoice& choice,
                     Index batch,
                     partitioner::Partition& partition);

// "every", or a rank below `ranks`; empty: every.
[[nodiscard]] partitioner::Reader parse_reader(const std::string& text, int ranks);

// What --replicas and --sync say. Throws InputError where that is nothing.
[[nodiscard]] partitioner::Replicas parse_replicas(const PartitionChoice& choice);

// Throws InputError where so many replicas cannot have equal shares of the ranks, or of the images
// of a pass.
void expect_even_replicas(int replicas, int ranks, Index batch);

// The partition that the user chose, or a default: one tile for one rank, a grid as square as can
// be for more; for each replica, where there are several. Throws InputError where it does not fit
// network, batch or ranks.
[[nodiscard]] partitioner::Partition choose_partition(const partitioner::Network& network,
                                                      const PartitionChoice& choice,
                                                      int ranks,
                                                      Index batch);

// Throws AgreedError on all ranks where gradients would travel rounded.
void expect_exact_gradients(const partitioner::Partition& partition, const std::string& command);

// Which statistics "sync", "frozen" or "tile" mean.
[[nodiscard]] BatchNormMode parse_batch_norm(const std::string& text);

// One line on standard error, of this rank or of rank 0. Goes on where that cannot be written.
void warn(const std::string& text);
void warn(const std::string& text, const Communicator& communicator);

// How pictures become inputs for the weights in a file, which keeps `stored`: values that the
// command line does not give are taken from there, and a warning says what is then still another
// way than in training.
[[nodiscard]] RenderingRules rules_for_weights(const std::string& weights,
                                               const std::optional<Preparation>& stored,
                                               const partitioner::ModelFile& model,
                                               const PixelConvention& given,
                                               const Communicator& communicator);

// The data set at `path`, for a network that ends in a loss. Throws InputError where a class
// has no output or several (expect_output_for_each_class); what is wrong with single pictures is
// left to its problems().
[[nodiscard]] Dataset open_labelled(const std::string& path,
                                    Split split,
                                    const partitioner::Network& network,
                                    const std::string& model);

// The second half of that, for a data set that is listed.
void expect_outputs(const partitioner::Network& network,
                    const std::string& model,
                    const Dataset& dataset,
                    const std::string& path);

// Scratch that the kernels of a plan take on each rank.
[[nodiscard]] std::vector<Index> workspace_bytes_of_ranks(const partitioner::Network& network,
                                                          const partitioner::Plan& plan,
                                                          bool training);

// What reports of a plan need to know of the model's training.
[[nodiscard]] partitioner::ReportOptions report_options(const std::string& model,
                                                        const partitioner::Network& network,
                                                        const partitioner::Plan& plan,
                                                        bool adam);

// Throws AgreedError on all ranks where those of one machine together need more memory for training
// than it has, or than their control group leaves.
void expect_memory(const partitioner::Network& network,
                   const partitioner::Plan& plan,
                   const partitioner::ReportOptions& options,
                   const Communicator& communicator);

// Throws InputError where the network of that model file has nothing to learn by.
void expect_loss(const partitioner::Network& network, const std::string& model);

// Warns on rank 0 where some ranks have nothing to do.
void warn_of_idle_ranks(const partitioner::Partition& partition, const Communicator& communicator);

}  // namespace tessera::engine
