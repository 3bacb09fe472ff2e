#include "partitioner/search/device_trials.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

constexpr double kPowerError = 0.05;     // of predicted powers relative to each other
constexpr std::size_t kLeastTrials = 2;  // whatever time they take
constexpr double kMostSteps = 0.5;       // of the run's, for trials
constexpr double kPreparingSteps = 1;    // what it takes to change over, until that was seen

// How much worse than the best what was tried once, twice, ... may be, to be tried again.
constexpr std::array kClose = {0.2, 0.1, 0.05};

double product_error(double a, double b) {
  return std::sqrt(a * a + b * b);
}

// What comes of changes in speed: twice as much where time counts twice, nothing in a power that
// depends on which devices work.
double sensitivity(Objective objective) {
  switch (objective) {
    case Objective::Power:
      return 0;
    case Objective::EnergyDelay:
      return 2;
    case Objective::Time:
    case Objective::Energy:
    case Objective::Memory:
      return 1;
  }
  return 1;
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

// What was measured by what was predicted: their geometric mean, and the least of them.
class Ratios {
 public:
  void add(double ratio) {
    logarithms_ += std::log(ratio);
    least_ = std::min(least_, ratio);
    ++count_;
  }
  [[nodiscard]] bool any() const { return count_ > 0; }
  [[nodiscard]] double mean() const { return count_ > 0 ? std::exp(logarithms_ / count_) : 1; }
  // What another one may be at least: where there is a single ratio, it may be one thing's own.
  [[nodiscard]] double least() const { return count_ > 1 ? least_ : std::min(1.0, least_); }

 private:
  double logarithms_ = 0;
  double least_ = kInfiniteRate;
  int count_ = 0;
};

const char* objective_noun(Objective objective) {
  switch (objective) {
    case Objective::Power:
      return "power";
    case Objective::Energy:
      return "energy";
    case Objective::EnergyDelay:
      return "energy-delay product";
    case Objective::Time:
    case Objective::Memory:
      return "time";
  }
  return "time";
}

}  // namespace

DeviceTrials::DeviceTrials(std::vector<PredictedSet> sets, const TrialOptions& options)
    : sets_(std::move(sets)), tried_(sets_.size()), trials_(sets_.size()), options_(options) {
  const bool asks_power = is_of_energy(options.objective) || options.power_limit_w < kInfiniteRate;
  for (const PredictedSet& set : sets_) {
    expects(!asks_power || !set.unfit.empty() || set.power_w, "the power of each set is known");
  }
}

// Sets of one device send nothing, so what is learnt of those says less of the others.
DeviceTrials::Correction DeviceTrials::correction(std::size_t set) const {
  Ratios alike_step;
  Ratios alike_power;
  Ratios any_step;
  Ratios any_power;
  for (std::size_t other = 0; other < sets_.size(); ++other) {
    if (!tried_[other]) {
      continue;
    }
    const bool alike = (sets_[other].devices == 1) == (sets_[set].devices == 1);
    const double step = tried_[other]->step_s.value / sets_[other].step_s;
    any_step.add(step);
    if (alike) {
      alike_step.add(step);
    }
    if (tried_[other]->power_w && sets_[other].power_w) {
      const double power = tried_[other]->power_w->value / *sets_[other].power_w;
      any_power.add(power);
      if (alike) {
        alike_power.add(power);
      }
    }
  }
  const auto least = [](const Ratios& alike, const Ratios& any) {
    return alike.any() ? alike.least() : std::min(1.0, any.least());
  };
  return {alike_step.any() ? alike_step.mean() : any_step.mean(),
          alike_power.any() ? alike_power.mean() : any_power.mean(),
          least(alike_step, any_step),
          least(alike_power, any_power)};
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
  if (const auto& tried = tried_[set]) {
    estimate.time_s = {options_.steps * tried->step_s.value, options_.steps * tried->step_s.error};
    estimate.power_w = tried->power_w;
  } else {
    const Correction by = correction(set);
    const PredictedSet& predicted = sets_[set];
    const double time_s = options_.steps * predicted.step_s * by.step;
    estimate.time_s = {time_s, options_.error * time_s};
    if (predicted.power_w) {
      const double power_w = *predicted.power_w * by.power;
      estimate.power_w = {power_w, power_w * std::max(kPowerError, predicted.power_error)};
    }
  }
  derive_energy(estimate);
  estimate.excess = excess(estimate);
  return estimate;
}

// As if predictions were too pessimistic by these shares.
SetOutlook DeviceTrials::best_case(std::size_t set, double step_error, double power_error) const {
  const Correction by = correction(set);
  const PredictedSet& predicted = sets_[set];
  SetOutlook estimate{.set = set};
  estimate.time_s.value = options_.steps * predicted.step_s * by.least_step * (1 - step_error);
  if (predicted.power_w) {
    estimate.power_w = {*predicted.power_w * by.least_power * std::max(0.0, 1 - power_error), 0};
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

// The least value of what was tried and keeps the limits, or, where nothing was tried, of what is
// predicted.
std::optional<double> DeviceTrials::least_value() const {
  const bool any = any_tried();
  std::optional<double> least;
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    if (sets_[set].unfit.empty() && tried_[set].has_value() == any) {
      const SetOutlook estimate = outlook(set);
      if (estimate.excess == 0) {
        least = std::min(least.value_or(std::numeric_limits<double>::infinity()), value(estimate));
      }
    }
  }
  return least;
}

// What was tried corrects the rest.
bool DeviceTrials::may_keep_limits(std::size_t set) const {
  const bool knows_power = std::any_of(
      tried_.begin(), tried_.end(), [](const auto& each) { return each && each->power_w; });
  const double step_error =
      any_tried() ? options_.error : std::max(options_.error, options_.first_error);
  const double power_error =
      knows_power ? kPowerError : std::max(kPowerError, sets_[set].power_error);
  return best_case(set, step_error, power_error).excess == 0;
}

bool DeviceTrials::is_ruled_out(std::size_t set) const {
  if (!sets_[set].unfit.empty()) {
    return true;
  }
  if (options_.all) {
    return false;
  }
  const std::optional<double> least = least_value();
  return !may_keep_limits(set) ||
         (least && value(best_case(set, options_.error, kPowerError)) >= *least);
}

Index DeviceTrials::steps_of(std::size_t set) const {
  constexpr double kMost = 50;
  const double step_s = sets_[set].step_s * correction(set).step;
  const double longer = 1 + trials_[set];
  const double counted =
      std::clamp(std::ceil(longer * options_.least_trial_s / step_s), longer, longer * kMost);
  const double most = std::max(2.0, std::floor(options_.steps * kMostSteps / 4));
  return static_cast<Index>(std::min(counted + 1, most));
}

bool DeviceTrials::has_time_for(std::size_t set) const {
  double spent_s = 0;
  double computed_s = 0;
  double steps = 0;
  std::size_t trials = 0;
  int all_trials = 0;
  double least_run_s = std::numeric_limits<double>::infinity();
  for (std::size_t other = 0; other < sets_.size(); ++other) {
    if (const auto& tried = tried_[other]) {
      ++trials;
      steps += static_cast<double>(tried->steps);
      all_trials += trials_[other];
      spent_s += tried->took_s;
      computed_s += static_cast<double>(tried->steps) * tried->step_s.value;
    }
    if (sets_[other].unfit.empty()) {
      least_run_s = std::min(least_run_s, outlook(other).time_s.value);
    }
  }
  const auto more = static_cast<double>(steps_of(set));
  if (options_.all) {
    return steps + more < options_.steps;
  }
  const double step_s = sets_[set].step_s * correction(set).step;
  const double preparing_s =
      all_trials > 0 ? std::max(0.0, spent_s - computed_s) / all_trials : kPreparingSteps * step_s;
  const double trial_s = preparing_s + more * step_s;
  return steps + more <= std::max(1.0, kMostSteps * options_.steps) &&
         ((trials < kLeastTrials && trials_[set] == 0) ||
          spent_s + trial_s <= options_.most_share * least_run_s);
}

std::optional<std::size_t> DeviceTrials::next() const {
  std::optional<std::size_t> set = next_new();
  if (!set && !options_.all) {
    set = next_again();
  }
  return set && has_time_for(*set) ? set : std::nullopt;
}

// The one that was tried least, and not last, of the best and of those that may be as good.
std::optional<std::size_t> DeviceTrials::next_again() const {
  const double sensitive = sensitivity(options_.objective);
  if (sensitive == 0) {
    return std::nullopt;
  }
  std::vector<SetOutlook> all = ranking();
  std::erase_if(all,
                [](const SetOutlook& estimate) { return !estimate.tried || estimate.excess > 0; });
  std::optional<std::size_t> least;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const std::size_t best = all.front().set;
    const std::size_t other = all[i].set;
    const auto done = static_cast<std::size_t>(std::min(trials_[best], trials_[other]));
    if (done > kClose.size() ||
        value(all[i]) > value(all.front()) * (1 + sensitive * kClose.at(done - 1))) {
      continue;
    }
    for (const std::size_t set : {best, other}) {
      const auto turn = [this](std::size_t candidate) {
        return std::pair(trials_[candidate], candidate == last_);
      };
      if (!least || turn(set) < turn(*least)) {
        least = set;
      }
    }
  }
  return least;
}

std::optional<std::size_t> DeviceTrials::next_new() const {
  std::optional<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    if (!tried_[set] && !is_ruled_out(set)) {
      const SetOutlook estimate = outlook(set);
      // What may exceed a limit comes behind what will not.
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
  if (is_ruled_out(estimate.set)) {
    return fmt::format("predicted {:.2f} times the {} of the best",
                       value(estimate) / least_value().value_or(value(estimate)),
                       objective_noun(options_.objective));
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
