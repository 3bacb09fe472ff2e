#include "engine/cli/device_choice.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "engine/base/in_threads.h"
#include "engine/cli/setup.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/report/device_names.h"

namespace tessera::engine {

using partitioner::ClusterProfile;
using partitioner::DeviceSet;
using partitioner::DeviceTrials;
using partitioner::Estimate;
using partitioner::Partition;

namespace {

// A picture that is tested takes its forward pass, about a third of what one that is trained on
// does.
constexpr double kTestingShare = 1.0 / 3;

double steps_of(const RunSize& size) {
  const double epochs = std::ceil(static_cast<double>(size.steps) /
                                  static_cast<double>(std::max<Index>(1, size.epoch_steps)));
  return static_cast<double>(size.steps) + kTestingShare * epochs * size.testing_steps;
}

bool has_part(const DeviceSet& set, int device) {
  return std::binary_search(set.devices.begin(), set.devices.end(), device);
}

}  // namespace

DeviceChoice::DeviceChoice(const ChooseCommand& command,
                           const partitioner::Network& network,
                           const Workload& workload,
                           Index steps,
                           ClusterProfile cluster)
    : command_(command),
      cluster_(std::move(cluster)),
      objective_(partitioner::objective_named(command.objective).value()) {
  if (is_of_energy(objective_) || command.power_limit_w > 0) {
    expect_known_powers(cluster_);
  }
  partitioner::DeviceSetOptions options;
  options.objective = objective_;
  if (command.power_limit_w > 0) {
    options.limits.watts = command.power_limit_w;
  }
  if (command.deadline_s > 0) {
    options.limits.seconds = command.deadline_s / static_cast<double>(steps);
  }
  options.needed = parse_reader(command.train.partition.reader, cluster_.size()).single_rank();
  const auto find_all = [&](const std::vector<std::vector<int>>& sets) {
    std::vector<std::optional<partitioner::Candidate>> found(sets.size());
    const auto find_one = [&](Index set) {
      found[static_cast<std::size_t>(set)] =
          find(sets[static_cast<std::size_t>(set)], network, workload);
    };
    for_each_in_threads(std::ssize(sets), find_one, 1);
    return found;
  };
  sets_ = search_device_sets(cluster_, options, find_all).sets;
  if (std::none_of(sets_.begin(), sets_.end(), [](const auto& set) { return set.found; })) {
    PartitionChoice all = command.train.partition;
    all.objective = "time";
    (void)search_automatically(network, cluster_, all, workload);  // says why
  }
}

std::optional<partitioner::Candidate> DeviceChoice::find(const std::vector<int>& devices,
                                                         const partitioner::Network& network,
                                                         const Workload& workload) const {
  PartitionChoice choice = command_.train.partition;
  choice.objective = "time";
  if (const auto reader = parse_reader(choice.reader, cluster_.size()).single_rank()) {
    choice.reader =
        std::to_string(std::find(devices.begin(), devices.end(), *reader) - devices.begin());
  }
  partitioner::SearchResult result =
      search_with_baselines(network, devices_of(cluster_, devices), choice, workload);
  if (result.candidates.empty()) {
    return std::nullopt;
  }
  partitioner::Candidate found = std::move(result.candidates.front());
  found.partition = on_ranks(std::move(found.partition), devices, cluster_.size());
  if (found.energy && command_.count_idle) {
    const std::optional<double> idle_w = idle_w_beside(devices);
    if (idle_w) {
      found.energy->energy_j += *idle_w * found.energy->step_s;
    } else {
      found.energy.reset();
    }
  }
  return found;
}

std::optional<double> DeviceChoice::idle_w_beside(const std::vector<int>& devices) const {
  double sum = 0;
  for (int device = 0; device < cluster_.size(); ++device) {
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      continue;
    }
    const auto power = known_power(cluster_.device(device));
    if (!power) {
      return std::nullopt;
    }
    sum += power->idle_w;
  }
  return sum;
}

const Partition& DeviceChoice::first_partition() const {
  return std::find_if(sets_.begin(), sets_.end(), [](const auto& set) { return set.found; })
      ->found->partition;
}

partitioner::PredictedSet DeviceChoice::predicted(const DeviceSet& set) const {
  partitioner::PredictedSet predicted;
  predicted.devices = static_cast<int>(set.devices.size());
  if (!set.found) {
    predicted.unfit = "the model does not fit into its memory";
    return predicted;
  }
  predicted.step_s = set.found->predicted_s();
  if (set.found->energy) {
    predicted.power_w = set.found->energy->power_w();
    predicted.power_error = set.found->energy->relative_error.value_or(0);
  }
  const Partition& partition = set.found->partition;
  const std::vector<int> busy = busy_ranks(partition);
  for (const int device : set.devices) {
    if (partition.reader.single_rank() != device &&
        !std::binary_search(busy.begin(), busy.end(), device)) {
      predicted.unfit =
          fmt::format("its best partition leaves {} without work", cluster_.device(device).name);
    }
  }
  return predicted;
}

DeviceTrials DeviceChoice::trials(const RunSize& size, bool metered) const {
  constexpr double kLeastWithMeter_s = 3;  // a meter shows a number a second
  partitioner::TrialOptions options;
  options.objective = objective_;
  options.steps = steps_of(size);
  if (command_.deadline_s > 0) {
    options.deadline_s = command_.deadline_s;
  }
  if (command_.power_limit_w > 0) {
    options.power_limit_w = command_.power_limit_w;
  }
  options.all = command_.try_all;
  if (metered && (is_of_energy(objective_) || command_.power_limit_w > 0)) {
    options.least_trial_s = kLeastWithMeter_s;
  }
  std::vector<partitioner::PredictedSet> all;
  for (const DeviceSet& set : sets_) {
    all.push_back(predicted(set));
  }
  return DeviceTrials(std::move(all), options);
}

void DeviceChoice::expect_choice(const DeviceTrials& trials, bool trials_to_come) const {
  if (trials.chosen() || (trials_to_come && trials.next())) {
    return;
  }
  const partitioner::SetOutlook closest = trials.ranking().front();
  throw InputError(fmt::format(
      "no set of devices keeps the limits; {} comes closest: {}",
      printable(partitioner::listed_devices(device_names(cluster_), sets_[closest.set].devices)),
      printable(closest.pruned)));
}

partitioner::ChoiceReport DeviceChoice::report(const DeviceTrials& trials, bool tried) const {
  partitioner::ChoiceReport report;
  report.objective = objective_;
  report.devices = device_names(cluster_);
  report.sets = sets_;
  report.ranking = trials.ranking();
  report.chosen = trials.chosen();
  report.steps = trials.steps();
  report.tried = tried;
  report.deadline_s = limit_given(command_.deadline_s);
  report.power_limit_w = limit_given(command_.power_limit_w);
  report.estimated = estimated_;
  for (const partitioner::SetOutlook& outlook : report.ranking) {
    const auto& found = sets_[outlook.set].found;
    const bool by_table = !outlook.tried && found && found->energy && found->energy->estimated;
    report.estimated = report.estimated || by_table;
  }
  return report;
}

std::optional<Estimate> DeviceChoice::power_of(const DeviceSet& set,
                                               const std::vector<RankTrial>& of_ranks,
                                               const std::vector<std::string>& hosts) {
  Estimate sum;
  const auto add = [&](double watts, double relative_error, bool estimated) {
    sum.value += watts;
    sum.error += watts * relative_error;
    estimated_ = estimated_ || estimated;
  };
  const MeasuredPower& together = of_ranks.front().cluster;
  if (together.known) {
    const std::optional<double> others_w =
        command_.count_idle ? std::optional(0.0) : idle_w_beside(set.devices);
    if (!others_w) {
      return std::nullopt;
    }
    add(std::max(0.0, together.watts - *others_w), together.relative_error, together.estimated);
    return sum;
  }
  std::set<std::string> counted;  // machines
  for (int device = 0; device < cluster_.size(); ++device) {
    if (!has_part(set, device) && !command_.count_idle) {
      continue;
    }
    const auto rank = static_cast<std::size_t>(device);
    const RankTrial* metered = nullptr;  // the rank that reads the machine's meter
    for (std::size_t other = 0; other < hosts.size(); ++other) {
      if (hosts[other] == hosts[rank] && of_ranks[other].board.known) {
        metered = &of_ranks[other];
      }
    }
    const auto power = known_power(cluster_.device(device));
    // What was measured before is better than what the meter knows of such boards.
    const bool better_by_profile =
        metered != nullptr && metered->board.estimated && power && !power->estimated;
    if (metered != nullptr && !better_by_profile) {
      const MeasuredPower& board = metered->board;
      if (counted.insert(hosts[rank]).second) {
        add(board.watts, board.relative_error, board.estimated);
      }
      continue;
    }
    if (!power) {
      return std::nullopt;
    }
    const double computing = has_part(set, device) ? of_ranks[rank].computing : 0;
    add(power->idle_w + computing * (power->busy_w.back() - power->idle_w),
        power->relative_error.value_or(0),
        power->estimated);
  }
  return sum;
}

}  // namespace tessera::engine
