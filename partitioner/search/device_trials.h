// Chooses among sets of devices by trying some of them: which to try next, which need no trial
// since predictions rule them out beyond their own error, and what comes out best. It measures
// nothing: whoever does tells it.
//
// How far predictions are off is much the same for sets of one device, and for sets of several: so
// what has been tried corrects the predictions of what has not. But a profile may be wrong about
// one device alone: a set is ruled out only if it would be too slow with the least error that was
// seen, and, while there is a single one, with none. What is left of their error is
// TrialOptions::error. How fast devices are changes while they are tried, with their temperature
// and with what else they do: so the best of those that were tried, and what is nearly as good, are
// tried again, in turn and for longer, as long as there is time. Limits are absolute: until
// something has been tried, no set is ruled out by them that may keep them by the error of
// predictions that nothing corrects.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/search/objective.h"

namespace tessera::partitioner {

// A value and how far it may be off, both in its unit.
struct Estimate {
  double value = 0;
  double error = 0;
};

struct PredictedSet {
  int devices = 1;
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
  double error = 0.1;        // of predicted steps relative to each other
  double first_error = 0.3;  // of predicted steps, before any set was tried
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

  // The set to try next, perhaps once more; nothing where the best of them is known, or there is no
  // time for more.
  [[nodiscard]] std::optional<std::size_t> next() const;

  // Steps that a trial of a set takes: the first finds connections and pages that are not there
  // yet, and is not counted.
  [[nodiscard]] Index steps_of(std::size_t set) const;

  // What a trial has shown. Several of one set count by the steps that they took.
  void add(std::size_t set, const TriedSet& tried);
  [[nodiscard]] int trials_of(std::size_t set) const { return trials_[set]; }

  // All sets: those that can be chosen first, the best of them first, in the order of `objective`.
  [[nodiscard]] std::vector<SetOutlook> ranking() const;

  [[nodiscard]] double steps() const { return options_.steps; }

  // The best of those that were tried and keep the limits; where there are none, of those that may
  // keep them by prediction. Nothing: no set does.
  [[nodiscard]] std::optional<std::size_t> chosen() const;

 private:
  // Measured by predicted: what is most likely, and the least that it may be.
  struct Correction {
    double step = 1;
    double power = 1;
    double least_step = 1;
    double least_power = 1;
  };
  [[nodiscard]] Correction correction(std::size_t set) const;
  [[nodiscard]] SetOutlook outlook(std::size_t set) const;
  [[nodiscard]] SetOutlook best_case(std::size_t set, double step_error, double power_error) const;
  [[nodiscard]] bool may_keep_limits(std::size_t set) const;
  void derive_energy(SetOutlook& estimate) const;
  [[nodiscard]] double value(const SetOutlook& estimate) const;
  [[nodiscard]] double excess(const SetOutlook& estimate) const;
  [[nodiscard]] std::string over_limits(const SetOutlook& estimate) const;
  [[nodiscard]] bool any_tried() const;
  [[nodiscard]] std::optional<double> least_value() const;
  [[nodiscard]] bool is_ruled_out(std::size_t set) const;
  [[nodiscard]] std::optional<std::size_t> next_new() const;
  [[nodiscard]] std::optional<std::size_t> next_again() const;
  [[nodiscard]] bool has_time_for(std::size_t set) const;
  [[nodiscard]] std::string why_pruned(const SetOutlook& estimate) const;

  std::vector<PredictedSet> sets_;
  std::vector<std::optional<TriedSet>> tried_;
  std::vector<int> trials_;  // of each set
  std::size_t last_ = 0;     // that was tried
  TrialOptions options_;
};

}  // namespace tessera::partitioner
