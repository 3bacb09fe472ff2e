// What keeping the maps of the frozen trunk (train/trunk_cache.h) takes and gains, before anything
// runs.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session/planning.h"
#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

// Predicted seconds of a step that computes these maps, and of one that is given them.
struct TrunkSteps {
  double computed_s = 0;
  double given_s = 0;

  // How many times as fast the second is.
  [[nodiscard]] double times() const { return computed_s / given_s; }
};

// Nothing where nothing is frozen, or the cluster is too large for steps to be played through.
[[nodiscard]] std::optional<TrunkSteps> predicted_trunk_steps(
    const PartitionRequest& request,
    const partitioner::Network& network,
    const Workload& workload,
    const partitioner::Partition& partition,
    const partitioner::Plan& plan,
    const partitioner::ClusterProfile& cluster);

// Bytes that each rank keeps of so many images, and of as many passes as it has at hand.
[[nodiscard]] std::vector<Index> trunk_bytes_of_ranks(const partitioner::Network& network,
                                                      const partitioner::Plan& plan,
                                                      Index images,
                                                      Index passes);

struct TrunkFigures {
  int last = 0;                              // layer of the trunk
  std::optional<std::string> obstacle = {};  // why its maps cannot be kept
  Index pictures = 0;                        // 0: not known
  Index variants = 1;                        // in which each is shown
  std::vector<Index> bytes = {};             // of each rank, for these pictures, or for one
  std::optional<TrunkSteps> steps = {};
};

// Of a plan; nothing where no layers are frozen. `variants`: 0: as 1.
[[nodiscard]] std::optional<TrunkFigures> trunk_figures(
    const PartitionRequest& request,
    const partitioner::Network& network,
    const Workload& workload,
    const partitioner::Partition& partition,
    const partitioner::Plan& plan,
    const std::optional<partitioner::ClusterProfile>& cluster,
    Index pictures,
    Index variants);

// A line for people, and an object of JSON.
[[nodiscard]] std::string trunk_line(const TrunkFigures& figures);
[[nodiscard]] std::string trunk_json(const TrunkFigures& figures);

}  // namespace tessera::engine
