// What else could be done with the devices of a cluster, by one cost model: use fewer of them, cut
// tiles evenly or by speed, share out images by speed, move samples to where they are trained on,
// synchronise less often. What each would take beside the partition that is chosen, and why that
// one wins.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/search/explained_plan.h"
#include "partitioner/search/search.h"

namespace tessera::partitioner {

struct Alternative {
  std::string name;
  std::string devices = {};  // that take part, where not all of them do; empty: all
  // Seconds of a step; nothing of what is not done in steps of the whole batch.
  std::optional<double> step_s = {};
  std::optional<double> epoch_s = {};     // where it is known how many samples there are
  std::optional<StepEnergy> energy = {};  // of a step, where powers are known
  std::optional<Index> most_bytes = {};   // of any device
  bool fits = true;
  bool exact = true;                    // training computes what one device would
  std::optional<TimeShares> time = {};  // of a step
  // What it takes by what the chosen partition takes, of what is compared; nothing: unknown.
  std::optional<double> ratio = {};
};

// Samples that lie on the devices, each of which trains on its own.
struct DataLocation {
  std::vector<Index> samples;  // [rank]
  double sample_bytes = 1;
  double epochs = 1;
};

// The fastest devices 1, 2, 3, ... sharing the images of each step: what a step takes, or nothing
// where it has fewer images.
struct SharedImages {
  int devices = 1;
  double step_s = 0;
  std::string limited_by = {};  // see what_limits()
};

inline constexpr const char* kChosenName = "chosen";

struct Alternatives {
  Objective compared =
      Objective::Time;               // that ratios are of: of energy where that is the objective
  std::vector<Alternative> all;      // kChosenName first; empty: nothing was compared
  std::vector<SharedImages> shared;  // of the cluster's devices
  std::vector<std::string> why;      // sentences: why the chosen partition wins, or what does
};

[[nodiscard]] Alternatives compare_alternatives(
    const Network& network,
    const ClusterProfile& cluster,
    const SearchOptions& options,
    const Partition& chosen,
    const std::optional<DataLocation>& data = std::nullopt);

// At most 100 columns; and one JSON object's members "alternatives", "compared" (an objective),
// "images_by_devices" and "why".
[[nodiscard]] std::string alternatives_table(const Alternatives& alternatives);
[[nodiscard]] std::string alternatives_json(const Alternatives& alternatives);

}  // namespace tessera::partitioner
