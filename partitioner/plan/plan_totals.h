// What a plan adds up to: messages, bytes and multiply-adds of one pass over a batch, by group and
// rank. Numbers only; partitioner/text/plan_report.h puts them into words.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

// Over the wire; what a rank keeps for itself is not counted.
struct Traffic {
  Index messages = 0;
  Index bytes = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

struct Totals {
  Traffic forward_in;
  Traffic forward_out;
  Traffic backward_in;  // gradients of maps, those reduced to their owners within a group included
  Traffic backward_out;
  Work work;  // forward
};

struct PlanTotals {
  std::vector<std::vector<Totals>>
      by_group;  // [group][rank]; messages count for the group that reads the map
  std::vector<Totals> group_totals;  // [group], over ranks
  std::vector<Totals> rank_totals;   // [rank], over groups
  Totals sum;
  // Parameters, once per step, one message per bucket: gradients to their owners, then values back
  // to those who compute with them.
  std::vector<Traffic> gradient_reduction_in;   // [rank]
  std::vector<Traffic> gradient_reduction_out;  // [rank]
  // Batch statistics received, [rank], in double precision: count, mean and squares on the way
  // forward, two sums on the way back.
  std::vector<Index> batch_statistics_in_bytes;
};

[[nodiscard]] PlanTotals plan_totals(const Network& network, const Plan& plan, Index scalar_bytes);

}  // namespace tessera::partitioner
