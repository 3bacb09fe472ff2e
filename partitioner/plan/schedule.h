// The order of a training step, as data: what is computed, and when each transfer starts and is
// waited for. The engine performs it action by action, the simulation prices it, reports list it.
//
// One list for all ranks. Which cells an action concerns on a rank follows from the geometry, and
// may be none: such an action is performed and does nothing. What overlaps is a matter of where
// actions stand: a transfer moves between its Start and its Finish, whatever is computed there
// hides it. Memory that changes hands (zeroed frames and gradients) is not listed.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "partitioner/base/strong_index.h"
#include "partitioner/network/network.h"
#include "partitioner/plan/message.h"

namespace tessera::partitioner {

struct Plan;

using TransferIndex = StrongIndex<struct TransferTag>;  // in Plan::transfers
inline constexpr TransferIndex kNoTransfer;

enum class TransferKind {
  FeatureMap,          // to a group that reads the map
  MapGradient,         // back from there; or to the owner, of a map inside a group
  BatchStatistics,     // count, mean and squared deviation of each channel
  StatisticsGradient,  // gradients of shift and scale of each channel
  Loss,
  ParameterGradient,  // of a bucket, to the owners
  ParameterValue,     // of a bucket, from the owners to all who compute with them
  RunningStatistics,  // from the owners, where ranks normalise by statistics of their own
  GradientNorm,       // squares of the gradients that each rank owns
  Candidates,         // what cells say that may get an object, to the rank that assigns them
  Assignments,        // from there: which object each of them has got
};
[[nodiscard]] const char* name_of(TransferKind kind);
// What a transfer's `subject` is, "map", "layer", ...; null: it has none.
[[nodiscard]] const char* subject_of(TransferKind kind);

struct Transfer {
  TransferKind kind = TransferKind::FeatureMap;
  int subject = 0;  // map, layer, bucket, or round of the loss or of the norm
  // For a feature map and its gradient: the group that reads it; for a gradient that is reduced to
  // its owner: the map's own. Where ranks begin with the first images of a tile while others are
  // still under way, a map has a transfer for each part.
  int group = -1;
  int part = 0;
  // For parameter gradients: with those of shift and scale of normalised layers, which are already
  // reduced over all ranks where these share batch statistics.
  bool normalized = true;
  Index most_cells = 0;  // of candidates and assignments: that count of an image, at most

  // Sorted by `to`, then `from`. Of maps also from a rank to itself, between two of its buffers.
  std::vector<Message> messages = {};
  TransferIndex list_of = kNoTransfer;  // the transfer that holds the messages, if not this one
  // False: every rank has what it reads already, of the image that it reads for itself. No schedule
  // runs the transfer; one that wants the image's gradient runs the messages in reverse.
  bool is_sent = true;
  bool reversed = false;  // messages run from `to` to `from`: gradients of what they copy forward

  bool adds = false;            // in the order of senders, when all is there; else as it arrives
  bool yields = false;          // lets others go first: parameters
  bool waits_for_sends = true;  // a Finish does; else only for what is received: maps
};

enum class Phase {
  Prepare,             // filters are transformed once for all parts
  Forward,             // pre-activations, or the layer's map where it has none; by parts
  Statistics,          // of a rank's own cells
  Activate,            // normalise, activate, and pool where that is fused
  Loss,                // of a rank's own cells
  Restore,             // a normalised map, from pre-activations that were kept in its stead
  Recompute,           // a layer of a recomputed group, as far as the backward pass wants it
  BackwardActivation,  // output gradient to pre-activation gradient; or its sums over channels
  BackwardNormalize,   // output gradient to pre-activation gradient, by sums over all ranks
  BackwardData,        // to gradients of the inputs
  BackwardWeights,     // part 0: cells summed at once; part 1: deferred ones
  GradientNorm,        // of what a rank owns
  ClipGradients,       // by the norm of all
  Update,              // of a bucket
  Assign,              // objects to cells of heads, of the images that a rank assigns them of
};
[[nodiscard]] const char* name_of(Phase phase);

struct Action {
  enum class Kind { Compute, Start, Finish };
  enum class Passes { Every, First, Last };  // of a step: in which of them it is performed

  Kind kind = Kind::Compute;
  Passes passes = Passes::Every;
  Phase phase = Phase::Forward;          // of Compute
  int layer = -1;                        // of Compute; -1: of none
  int part = 0;                          // of Forward: the parts of a tile with that `awaits`
  int bucket = -1;                       // of Update
  TransferIndex transfer = kNoTransfer;  // of Start and Finish

  friend bool operator==(const Action&, const Action&) = default;
};
using ActionIndex = StrongIndex<struct ActionTag>;  // in Schedule::actions
[[nodiscard]] const char* name_of(Action::Kind kind);
[[nodiscard]] const char* name_of(Action::Passes passes);

// Actions [begin, end).
struct Section {
  ActionIndex begin = ActionIndex(0);
  ActionIndex end = ActionIndex(0);
  friend bool operator==(const Section&, const Section&) = default;
};

// A step runs `forward`, `loss` and `backward` once per pass, then `update`. Values of parameters
// are still under way when it ends: the first pass of the next step finishes them.
struct Schedule {
  IndexedVector<ActionIndex, Action> actions;
  Section forward;
  Section loss;
  Section backward;
  Section update;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

struct ScheduleSection {
  const char* name;
  Section Schedule::*actions;
};
inline constexpr ScheduleSection kScheduleSections[] = {{"forward", &Schedule::forward},
                                                        {"loss", &Schedule::loss},
                                                        {"backward", &Schedule::backward},
                                                        {"update", &Schedule::update}};

// Whose statistics a normalised layer normalises by.
enum class Statistics {
  Batch,    // of all ranks' cells: exact
  Tile,     // of the rank's own; running statistics are shared after a step
  Running,  // those of earlier steps, which stay as they are
};

struct ScheduleOptions {
  bool training = true;  // false: forward only, by running statistics
  Statistics statistics = Statistics::Batch;
  bool has_loss = true;
  bool image_gradient = false;  // the gradient of the network's input is wanted too
  bool update = true;           // false: parameters are not changed; gradients are reduced
  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&) = default;
};

// Requires a plan that is complete but for its schedule.
[[nodiscard]] Schedule make_schedule(const Network& network,
                                     const Plan& plan,
                                     const ScheduleOptions& options);

// Where a pass stands among those of its step: the only one is first and last.
struct PassOfStep {
  bool first = true;
  bool last = true;
};

// Whether an action is performed in that pass.
[[nodiscard]] constexpr bool is_performed(const Action& action, const PassOfStep& pass) {
  return action.passes == Action::Passes::Every ||
         (action.passes == Action::Passes::First ? pass.first : pass.last);
}

// Calls visit(index of an action, pass) for all of a section in one pass.
template <class Visit>
void for_each_action(
    const Schedule& schedule, const Section& section, Index pass, Index passes, Visit visit) {
  const PassOfStep place{.first = pass == 0, .last = pass + 1 == passes};
  for (ActionIndex i = section.begin; i < section.end; ++i) {
    if (is_performed(schedule.actions[i], place)) {
      visit(i, pass);
    }
  }
}

// The same for a step; the update counts as part of the last pass.
template <class Visit>
void for_each_action(const Schedule& schedule, Index passes, Visit visit) {
  for (Index pass = 0; pass < passes; ++pass) {
    for (const Section& section : {schedule.forward, schedule.loss, schedule.backward}) {
      for_each_action(schedule, section, pass, passes, visit);
    }
  }
  for_each_action(schedule, schedule.update, passes - 1, passes, visit);
}

// What is wrong with the order of a schedule of the plan, a sentence each; empty for a sound one.
[[nodiscard]] std::vector<std::string> check_schedule(const Network& network,
                                                      const Plan& plan,
                                                      const Schedule& schedule);

}  // namespace tessera::partitioner
