// What a person asks of a plan first, in a few lines: whether it fits into the memory of the
// devices, how long a step and an epoch take, whether dividing the work among them is worth it, and
// what to try next.

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
  std::string single_device = {};       // its name; empty: all are alike

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

struct PlanAnswer {
  AnsweredStep of = {};
  std::vector<std::string> names = {};  // of the devices, by rank
  // What each of them needs while it trains, and what it has for that.
  std::vector<MemoryUse> memory = {};
  std::vector<Index> limits = {};
  std::string why_nothing_fits = {};  // of a search that found nothing that does
  bool is_searched = false;           // whether the partition is a search's
  bool is_assumed = false;            // nobody has described the devices
  double step_s = 0;                  // a mean one, where the size of the input changes
  Index images = 1;                   // of a step
  Index pictures = 0;                 // of the data set; 0: not known

  [[nodiscard]] bool fits() const;
  // Steps that see each picture once, the last of them perhaps others as well.
  [[nodiscard]] Index epoch_steps() const { return (pictures + images - 1) / images; }
  [[nodiscard]] double epoch_s() const { return static_cast<double>(epoch_steps()) * step_s; }
  // Whether several devices are faster than the best of them alone, by more than predictions err;
  // nothing where there are no several, the plan does not fit, or it is not known.
  [[nodiscard]] std::optional<bool> worth_it() const;
};

// Lines of at most 100 columns; times and energies with two digits.
[[nodiscard]] std::string plan_answer(const PlanAnswer& answer);
// One JSON object, of the predicted step and all of the above, with all digits.
[[nodiscard]] std::string answer_json(const PlanAnswer& answer);

}  // namespace tessera::partitioner
