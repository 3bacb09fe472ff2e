#include "partitioner/search/device_trials.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numbers>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

constexpr double kPowerError = 0.05;     // of predicted powers relative to each other
constexpr double kPowerCommon = 1;       // of all predicted powers, which may be of other boards
constexpr double kPowerNoise = 0.02;     // of powers from trial to trial
constexpr std::size_t kLeastTrials = 2;  // whatever time they take
constexpr double kAsGood = 0.01;         // what is worse by this share is as good
constexpr double kLeastGain = 1e-4;      // that is worth a trial, however little that costs
constexpr double kMostSteps = 0.5;       // of the run's, for trials
constexpr double kPreparingSteps = 1;    // what it takes to change over, until that was seen

double product_error(double a, double b) {
  return std::sqrt(a * a + b * b);
}

// The objective is time to one power, watts to another.
struct Exponents {
  double time = 1;
  double power = 0;
};

Exponents exponents(Objective objective) {
  switch (objective) {
    case Objective::Power:
      return {0, 1};
    case Objective::Energy:
      return {1, 1};
    case Objective::EnergyDelay:
      return {2, 1};
    case Objective::Time:
    case Objective::Memory:
      return {1, 0};
  }
  return {1, 0};
}

// E[max(0, x)] of a normal x.
double expected_positive(const LogEstimate& x) {
  const double deviation = std::sqrt(x.variance);
  if (deviation < 1e-12) {
    return std::max(0.0, x.mean);
  }
  const double z = x.mean / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return deviation * density + x.mean * std::erfc(-z / std::numbers::sqrt2) / 2;
}

// Of what a logarithm is known of.
Estimate estimate_of(const LogEstimate& logarithm, double times = 1) {
  const double value = times * std::exp(logarithm.mean);
  return {value, value * std::sqrt(logarithm.variance)};
}

std::vector<std::vector<int>> devices_of_sets(const std::vector<PredictedSet>& sets) {
  std::vector<std::vector<int>> devices;
  for (const PredictedSet& set : sets) {
    devices.push_back(set.devices);
  }
  return devices;
}

// 0 where nothing is predicted.
double logarithm(double value) {
  return value > 0 ? std::log(value) : 0;
}

std::vector<double> logarithms_of_steps(const std::vector<PredictedSet>& sets) {
  std::vector<double> logarithms;
  for (const PredictedSet& set : sets) {
    logarithms.push_back(logarithm(set.step_s));
  }
  return logarithms;
}

std::vector<double> logarithms_of_powers(const std::vector<PredictedSet>& sets) {
  std::vector<double> logarithms;
  for (const PredictedSet& set : sets) {
    logarithms.push_back(logarithm(set.power_w.value_or(0)));
  }
  return logarithms;
}

// The mean of two measurements with these weights, as far off as they are by themselves and from
// each other.
Estimate pooled(const Estimate& a, double weight, const Estimate& b, double other_weight) {
  const double sum = weight + other_weight;
  return {(weight * a.value + other_weight * b.value) / sum,
          std::hypot(weight * a.error / sum,
                     other_weight * b.error / sum,
                     std::sqrt(weight * other_weight) / sum * (a.value - b.value) / 2)};
}

}  // namespace

DeviceTrials::DeviceTrials(std::vector<PredictedSet> sets, const TrialOptions& options)
    : sets_(std::move(sets)),
      tried_(sets_.size()),
      trials_(sets_.size()),
      options_(options),
      time_(devices_of_sets(sets_),
            logarithms_of_steps(sets_),
            {.common = options.first_error, .error = options.error, .noise = options.noise}),
      power_(devices_of_sets(sets_),
             logarithms_of_powers(sets_),
             {.common = kPowerCommon, .error = kPowerError, .noise = kPowerNoise}) {
  const bool asks_power = is_of_energy(options.objective) || options.power_limit_w < kInfiniteRate;
  for (const PredictedSet& set : sets_) {
    expects(!asks_power || !set.unfit.empty() || set.power_w, "the power of each set is known");
  }
}

// Energy and its product with time follow from time and power.
void DeviceTrials::derive_energy(SetOutlook& estimate) const {
  if (!estimate.power_w) {
    return;
  }
  const double time = estimate.time_s.error / estimate.time_s.value;
  const double power =
      estimate.power_w->value > 0 ? estimate.power_w->error / estimate.power_w->value : 0;
  const double energy_j = estimate.time_s.value * estimate.power_w->value;
  const double delay_js = estimate.time_s.value * energy_j;
  estimate.energy_j = {energy_j, energy_j * product_error(time, power)};
  estimate.energy_delay_js = {delay_js, delay_js * product_error(2 * time, power)};
}

SetOutlook DeviceTrials::outlook(std::size_t set) const {
  SetOutlook estimate{.set = set, .tried = tried_[set]};
  const PredictedSet& predicted = sets_[set];
  estimate.time_s = estimate_of(time_.of(set), options_.steps);
  if (!any_tried()) {
    estimate.time_s.error = options_.error * estimate.time_s.value;
  }
  const auto& measured_w = tried_[set] ? tried_[set]->power_w : std::nullopt;
  if (predicted.power_w || measured_w) {
    // A meter is as wrong about one set as about another: trials do not show it.
    const double unseen = measured_w ? measured_w->error / measured_w->value
                                     : std::max(kPowerError, predicted.power_error);
    estimate.power_w = estimate_of(power_.of(set));
    estimate.power_w->error =
        estimate.power_w->value *
        (knows_power_ ? product_error(estimate.power_w->error / estimate.power_w->value, unseen)
                      : unseen);
  }
  derive_energy(estimate);
  estimate.excess = excess(estimate);
  return estimate;
}

double DeviceTrials::value(const SetOutlook& estimate) const {
  return objective_value(
      options_.objective, estimate.time_s.value, estimate.energy_j ? estimate.energy_j->value : 0);
}

double DeviceTrials::excess(const SetOutlook& estimate) const {
  return std::max({0.0,
                   estimate.time_s.value / options_.deadline_s - 1,
                   estimate.power_w ? estimate.power_w->value / options_.power_limit_w - 1 : 0});
}

std::string DeviceTrials::over_limits(const SetOutlook& estimate) const {
  if (estimate.time_s.value > options_.deadline_s) {
    return fmt::format("would take {:.4g} s, the deadline is {:.4g} s",
                       estimate.time_s.value,
                       options_.deadline_s);
  }
  return fmt::format("would take {:.3g} W, the limit is {:.3g} W",
                     estimate.power_w->value,
                     options_.power_limit_w);
}

bool DeviceTrials::any_tried() const {
  return std::any_of(
      tried_.begin(), tried_.end(), [](const auto& each) { return each.has_value(); });
}

bool DeviceTrials::may_keep_limits(std::size_t set) const {
  const auto least = [](const LogEstimate& of) {
    return std::exp(of.mean - 2 * std::sqrt(of.variance));
  };
  const LogEstimate step_s = time_.of(set);
  SetOutlook best_case{.set = set};
  best_case.time_s.value =
      options_.steps *
      (any_tried() ? least(step_s)
                   : std::exp(step_s.mean) * (1 - std::max(options_.error, options_.first_error)));
  if (const auto& predicted_w = sets_[set].power_w) {
    const double error = std::max(kPowerError, sets_[set].power_error);
    best_case.power_w = {
        knows_power_ ? least(power_.of(set)) : *predicted_w * std::max(0.0, 1 - error), 0};
  }
  return excess(best_case) == 0;
}

// Of those that keep the limits.
std::optional<std::size_t> DeviceTrials::best_tried() const {
  std::optional<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    if (tried_[set] && sets_[set].unfit.empty()) {
      const SetOutlook estimate = outlook(set);
      if (estimate.excess == 0 && value(estimate) < least) {
        least = value(estimate);
        best = set;
      }
    }
  }
  return best;
}

// Of the power, which errs much less, the mixture is taken for a single normal.
double DeviceTrials::gain(std::size_t set, std::size_t best) const {
  const auto [of_time, of_power] = exponents(options_.objective);
  const LogEstimate power = power_.ratio(best, set);
  double sum = 0;
  for (const auto& [weight, time] : time_.ratios(best, set)) {
    sum += weight * expected_positive(
                        {of_time * time.mean + of_power * power.mean - kAsGood,
                         of_time * of_time * time.variance + of_power * of_power * power.variance});
  }
  return sum;
}

double DeviceTrials::learnt(std::size_t set, std::size_t best, std::size_t tried) const {
  const auto [of_time, of_power] = exponents(options_.objective);
  return of_time * of_time * time_.learnt(best, set, tried) +
         of_power * of_power * power_.learnt(best, set, tried);
}

double DeviceTrials::step_s(std::size_t set) const {
  return std::exp(time_.of(set).mean);
}

Index DeviceTrials::steps_of(std::size_t set) const {
  constexpr double kMost = 50;
  const double counted = std::clamp(std::ceil(options_.least_trial_s / step_s(set)), 1.0, kMost);
  const double most = std::max(2.0, std::floor(options_.steps * kMostSteps / 4));
  return static_cast<Index>(std::min(counted + 1, most));
}

// With changing over, which takes nothing where the set is the last one.
double DeviceTrials::trial_s(std::size_t set) const {
  const double step = step_s(set);
  const double preparing_s = set == last_   ? 0
                             : changes_ > 0 ? preparing_s_ / changes_
                                            : kPreparingSteps * step;
  return preparing_s + static_cast<double>(steps_of(set)) * step;
}

// As a share of the run: what the trial takes longer than its steps by the best set.
double DeviceTrials::cost(std::size_t set, std::size_t best) const {
  const double best_s = step_s(best);
  const auto steps = static_cast<double>(steps_of(set));
  return std::max(0.0, trial_s(set) - steps * best_s) / (options_.steps * best_s);
}

bool DeviceTrials::has_time_for(std::size_t set) const {
  double spent_s = 0;
  double steps = 0;
  std::size_t trials = 0;
  double least_run_s = std::numeric_limits<double>::infinity();
  for (std::size_t other = 0; other < sets_.size(); ++other) {
    if (const auto& tried = tried_[other]) {
      ++trials;
      steps += static_cast<double>(tried->steps);
      spent_s += tried->took_s;
    }
    if (sets_[other].unfit.empty()) {
      least_run_s = std::min(least_run_s, options_.steps * step_s(other));
    }
  }
  const auto more = static_cast<double>(steps_of(set));
  if (options_.all) {
    return steps + more < options_.steps;
  }
  return steps + more <= std::max(1.0, kMostSteps * options_.steps) &&
         ((trials < kLeastTrials && trials_[set] == 0) ||
          spent_s + trial_s(set) <= options_.most_share * least_run_s);
}

std::optional<std::size_t> DeviceTrials::next() const {
  const std::optional<std::size_t> best = best_tried();
  if (!best || options_.all) {
    const std::optional<std::size_t> set = next_new();
    return set && has_time_for(*set) ? set : std::nullopt;
  }
  std::optional<std::size_t> other;
  double most = 0;
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    if (set != *best && sets_[set].unfit.empty() && may_keep_limits(set) && has_time_for(set)) {
      const double net = gain(set, *best) - std::max(kLeastGain, cost(set, *best));
      if (net > most) {
        most = net;
        other = set;
      }
    }
  }
  if (!other) {
    return std::nullopt;
  }
  std::optional<std::size_t> next;
  double most_learnt = 0;
  for (const std::size_t set : {*other, *best}) {
    const double learnt_per_s = learnt(*other, *best, set) / trial_s(set);
    if (set != last_ && learnt_per_s > most_learnt) {
      most_learnt = learnt_per_s;
      next = set;
    }
  }
  return next && has_time_for(*next) ? next : std::nullopt;
}

// What may exceed a limit comes behind what will not.
std::optional<std::size_t> DeviceTrials::next_new() const {
  std::optional<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    if (!tried_[set] && sets_[set].unfit.empty() && (options_.all || may_keep_limits(set))) {
      const SetOutlook estimate = outlook(set);
      const double price =
          value(estimate) * (estimate.excess > 0 ? 1e6 * (1 + estimate.excess) : 1);
      if (price < least) {
        least = price;
        best = set;
      }
    }
  }
  return best;
}

void DeviceTrials::add(std::size_t set, const TriedSet& tried) {
  expects(set < sets_.size() && tried.step_s.value > 0, "a set that there is, and steps of it");
  time_.observe(set, std::log(tried.step_s.value), tried.step_s.error / tried.step_s.value);
  if (tried.power_w && tried.power_w->value > 0) {
    power_.observe(set, std::log(tried.power_w->value), 0);
    knows_power_ = true;
  }
  if (set != last_) {
    preparing_s_ +=
        std::max(0.0, tried.took_s - static_cast<double>(tried.steps) * tried.step_s.value);
    ++changes_;
  }
  const int before = trials_[set]++;
  last_ = set;
  std::optional<TriedSet>& known = tried_[set];
  if (!known) {
    known = tried;
    return;
  }
  // The first step of each does not count.
  const auto weight = static_cast<double>(std::max<Index>(known->steps - before, 1));
  const auto other = static_cast<double>(std::max<Index>(tried.steps - 1, 1));
  known->steps += tried.steps;
  known->took_s += tried.took_s;
  known->step_s = pooled(known->step_s, weight, tried.step_s, other);
  if (known->power_w && tried.power_w) {
    known->power_w = pooled(*known->power_w, weight, *tried.power_w, other);
  }
}

std::string DeviceTrials::why_pruned(const SetOutlook& estimate) const {
  const PredictedSet& set = sets_[estimate.set];
  if (!set.unfit.empty()) {
    return set.unfit;
  }
  if (estimate.excess > 0) {
    return over_limits(estimate);
  }
  if (estimate.tried) {
    return "";
  }
  const std::optional<std::size_t> best = best_tried();
  if (best && has_time_for(estimate.set)) {
    return fmt::format("predicted {:.2f} times the {} of the best",
                       value(estimate) / value(outlook(*best)),
                       noun_of(options_.objective));
  }
  return any_tried() ? "there is no time for another trial" : "";
}

std::vector<SetOutlook> DeviceTrials::ranking() const {
  std::vector<SetOutlook> all;
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    all.push_back(outlook(set));
    all.back().pruned = why_pruned(all.back());
  }
  const auto is_unfit = [this](const SetOutlook& estimate) {
    return !sets_[estimate.set].unfit.empty();
  };
  std::stable_sort(all.begin(), all.end(), [&](const SetOutlook& a, const SetOutlook& b) {
    if (is_unfit(a) != is_unfit(b)) {
      return is_unfit(b);
    }
    return a.excess != b.excess ? a.excess < b.excess : value(a) < value(b);
  });
  return all;
}

std::optional<std::size_t> DeviceTrials::chosen() const {
  const std::vector<SetOutlook> all = ranking();
  for (const bool tried : {true, false}) {
    for (const SetOutlook& estimate : all) {
      if (estimate.tried.has_value() == tried && estimate.excess == 0 &&
          sets_[estimate.set].unfit.empty()) {
        return estimate.set;
      }
    }
  }
  return std::nullopt;
}

}  // namespace tessera::partitioner
