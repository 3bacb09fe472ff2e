// Chooses among sets of devices by trying some of them: which to try next, when to stop, and what
// comes out best. It measures nothing: whoever does tells it.
//
// set_posterior.h says what is known of each set's step time t and power w after some trials. The
// objective is V = t^p w^q with (p, q) = (1, 0) for time, (0, 1) power, (1, 1) energy, (2, 1) for
// their product, so by each hypothesis its logarithm is normal, and so is that of how much better
// than the best set B that was tried another set S may be. Sets that differ by 1 % are as good as
// each other. With x = log V(B) / V(S) - 1 %, normal with mean u and standard deviation s,
//
//   gain(S) = E[max(0, x)] = s f(u / s) + u F(u / s),   summed over hypotheses by their weights,
//
// with the density f and the distribution F of the standard normal, is the expected improvement by
// S, as a share of the objective.
//
// The first trial is of the set that is predicted to be the best. Then the contender is the set
// whose gain on the run is the largest above what a trial of it costs; where there is none, the
// choice is made. The trial is of the contender or of B: of that which lowers the variance of x
// more for each second that it takes, but never twice in a row of the same, which would show the
// same passing state of its devices.
//
// Steps of trials are steps of the run: what a trial costs is the time to change over to the set,
// and by which its steps take longer than by B, as a share of the run. All trials together may take
// `most_share` of the run.
//
// Limits are absolute: until something has been tried, no set is ruled out by them that may keep
// them by `first_error`; then none that may by two standard deviations.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/search/objective.h"
#include "partitioner/search/set_posterior.h"

namespace tessera::partitioner {

// A value and how far it may be off, both in its unit.
struct Estimate {
  double value = 0;
  double error = 0;
};

struct PredictedSet {
  std::vector<int> devices = {};  // in rising order
  double step_s = 0;
  std::optional<double> power_w = {};  // nothing: unknown
  double power_error = 0;              // relative
  std::string unfit = {};              // why it cannot be chosen at all; empty: it can
};

struct TriedSet {
  Index steps = 0;  // that were done, in all trials
  Estimate step_s = {};
  std::optional<Estimate> power_w = {};
  double took_s = 0;  // all trials, with changing over to the set
};

struct TrialOptions {
  Objective objective = Objective::Time;
  // In the whole run; an evaluation counts as the steps that would take as long.
  double steps = 1;
  double deadline_s = kInfiniteRate;  // of the whole run
  double power_limit_w = kInfiniteRate;
  double error = 0.1;        // of predicted steps relative to each other, as it usually is
  double noise = 0.04;       // by which steps vary from trial to trial, likewise
  double first_error = 0.3;  // common to all predicted steps
  double least_trial_s = 1;  // that a trial takes, where steps are short
  bool all = false;          // every set that can be chosen is tried, whatever is predicted of it
  double most_share = 0.05;  // of the run's time, for all trials; two are made at least
};

// What is known of a set, for the whole run.
struct SetOutlook {
  std::size_t set = 0;  // its number
  Estimate time_s = {};
  std::optional<Estimate> power_w = {};
  std::optional<Estimate> energy_j = {};
  std::optional<Estimate> energy_delay_js = {};
  std::optional<TriedSet> tried = {};
  std::string pruned = {};  // why it was not tried, or may not be chosen; empty: neither
  double excess = 0;        // over a limit, relative to it; 0: it keeps both
};

class DeviceTrials {
 public:
  // Objectives of energy and a limit of power require that all powers are known.
  DeviceTrials(std::vector<PredictedSet> sets, const TrialOptions& options);

  // The set to try next, perhaps once more; nothing where another trial would not be worth it, or
  // there is no time for it.
  [[nodiscard]] std::optional<std::size_t> next() const;

  // Steps that a trial of a set takes: the first finds connections and pages that are not there
  // yet, and is not counted.
  [[nodiscard]] Index steps_of(std::size_t set) const;

  // What a trial has shown.
  void add(std::size_t set, const TriedSet& tried);
  [[nodiscard]] int trials_of(std::size_t set) const { return trials_[set]; }

  // All sets: those that can be chosen first, the best of them first, in the order of `objective`.
  [[nodiscard]] std::vector<SetOutlook> ranking() const;

  [[nodiscard]] double steps() const { return options_.steps; }

  // The best of those that were tried and keep the limits; where there are none, of those that may
  // keep them by prediction. Nothing: no set does.
  [[nodiscard]] std::optional<std::size_t> chosen() const;

 private:
  [[nodiscard]] SetOutlook outlook(std::size_t set) const;
  void derive_energy(SetOutlook& estimate) const;
  [[nodiscard]] double value(const SetOutlook& estimate) const;
  [[nodiscard]] double excess(const SetOutlook& estimate) const;
  [[nodiscard]] std::string over_limits(const SetOutlook& estimate) const;
  [[nodiscard]] bool any_tried() const;
  [[nodiscard]] bool may_keep_limits(std::size_t set) const;
  [[nodiscard]] std::optional<std::size_t> best_tried() const;
  [[nodiscard]] double gain(std::size_t set, std::size_t best) const;
  [[nodiscard]] double learnt(std::size_t set, std::size_t best, std::size_t tried) const;
  [[nodiscard]] std::optional<std::size_t> next_new() const;
  [[nodiscard]] double step_s(std::size_t set) const;
  [[nodiscard]] double trial_s(std::size_t set) const;
  [[nodiscard]] double cost(std::size_t set, std::size_t best) const;
  [[nodiscard]] bool has_time_for(std::size_t set) const;
  [[nodiscard]] std::string why_pruned(const SetOutlook& estimate) const;

  std::vector<PredictedSet> sets_;
  std::vector<std::optional<TriedSet>> tried_;
  std::vector<int> trials_;          // of each set
  std::optional<std::size_t> last_;  // that was tried
  TrialOptions options_;
  SetPosterior time_;
  SetPosterior power_;
  bool knows_power_ = false;  // some trial measured it
  double preparing_s_ = 0;    // of all trials: changing over to their sets
  int changes_ = 0;
};

}  // namespace tessera::partitioner
