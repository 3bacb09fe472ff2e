// A step of a plan, played through event by event: each rank performs the schedule, waits for what
// it has to, and messages share the network interfaces they pass.
//
// Messages under way at one time share rates fairly (max-min): of the sender's interface, of the
// receiver's, and none gets more than its link has. Messages of one pair follow each other, as in
// one connection. The wire carries while processors compute; what posting, packing and unpacking
// take of a processor it cannot compute in. The same plan and profile give the same times on any
// machine to rounding.

#pragma once

#include <vector>

#include "partitioner/cost/step_prices.h"

namespace tessera::partitioner {

// What a rank did from one time to another, in seconds from the start of the step.
struct TimelineSpan {
  enum class Doing { Compute, Send, Wait, Receive };  // Send and Receive: packing and unpacking
  Doing doing = Doing::Compute;
  PricedActionIndex action = {};
  double begin_s = 0;
  double end_s = 0;
};

struct SimulatedStep {
  double step_s = 0;                                 // until the last rank is done
  std::vector<std::vector<TimelineSpan>> timelines;  // [rank], without gaps

  // What one rank spends on it.
  [[nodiscard]] double seconds(int rank, TimelineSpan::Doing doing) const;
};

// Whether the messages between so many devices are few enough to be played through in about a
// second: each that leaves changes the rates of those that are under way with it.
[[nodiscard]] bool is_simulable(const Network& network, int devices);

[[nodiscard]] SimulatedStep simulate(const PricedStep& step, const ClusterProfile& cluster);

}  // namespace tessera::partitioner
