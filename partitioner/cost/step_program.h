// A training step as each rank runs it: what it computes, when it starts a transfer and when it
// waits for one, in the engine's order (engine/execution/execution.cpp, engine/train/trainer.cpp).
// A step counts from one update to the next: gradients are summed while the backward pass goes on,
// and new values travel while the next forward pass does. All ranks run the same list; how long an
// action takes and which parcels concern a rank differ.

#pragma once

#include <vector>

#include "partitioner/cost/cost_model.h"

namespace tessera::partitioner {

struct PricedTransfer {
  std::vector<Parcel> parcels;  // in the order in which a rank sends its own
  bool in_order = false;        // all must be there before the first is taken in: sums
  bool bulk = false;            // lets others go first: gradients and values of parameters
  bool waits_for_sends = true;  // else a rank goes on when it has what it receives: maps
};

enum class StepPart {
  ForwardMaps,
  Forward,
  ForwardStatistics,
  Loss,
  Recompute,
  BackwardMaps,
  Backward,
  BackwardStatistics,
  GradientSum,
  Update,
  ValueShare
};
[[nodiscard]] const char* name_of(StepPart part);

struct StepAction {
  enum class Kind { Compute, Start, Finish };
  Kind kind = Kind::Compute;
  StepPart part = StepPart::Forward;
  int layer = -1;               // -1: of no layer
  int transfer = -1;            // of Start and Finish
  std::vector<double> seconds;  // of Compute: [rank]
};

struct StepProgram {
  int ranks = 1;
  std::vector<PricedTransfer> transfers;
  std::vector<StepAction> actions;
};

[[nodiscard]] StepProgram step_program(const Network& network,
                                       const Plan& plan,
                                       const ClusterProfile& cluster,
                                       const CostOptions& options);

}  // namespace tessera::partitioner
