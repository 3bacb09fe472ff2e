// What a person asks of a plan first, in a few lines: how long a step takes, how many times faster
// than one device and why, how much memory, and what to try next.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/text/explain.h"

namespace tessera::partitioner {

// The predicted step beside the best that one device of the cluster could do.
struct AnsweredStep {
  ExplainedPlan step;
  int devices = 1;
  bool searched = false;                // whether `single` was looked for
  std::optional<ExplainedPlan> single;  // nothing where it does not fit into one device

  // 1 for a single device; nothing where it is not known.
  [[nodiscard]] std::optional<double> speed_up() const;
};

// `step` is of the whole cluster. Of large networks the single device is left out: to look for its
// best partition would take longer than all else.
[[nodiscard]] AnsweredStep answered_step(const Network& network,
                                         const ClusterProfile& cluster,
                                         const SearchOptions& options,
                                         ExplainedPlan step);

// Why `plan` is faster than the share of its devices in what `single` takes: "one device has to
// recompute layers for lack of memory (1.2 s of its step)". Empty where it is not faster.
[[nodiscard]] std::string why_faster(const ExplainedPlan& single,
                                     const ExplainedPlan& plan,
                                     double devices);

// Lines of at most 100 columns. `step` is nothing where there is no profile of a cluster;
// `searched` says whether the partition is a search's. Memory is that of each rank.
[[nodiscard]] std::string plan_answer(const std::optional<AnsweredStep>& step,
                                      const std::vector<MemoryUse>& memory,
                                      bool searched);

}  // namespace tessera::partitioner
