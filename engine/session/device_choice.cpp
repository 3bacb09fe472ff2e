#include "engine/session/device_choice.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "engine/base/in_threads.h"
#include "engine/data/dataset.h"
#include "engine/session/class_outputs.h"
#include "engine/session/model_setup.h"
#include "engine/session/training_length.h"
#include "engine/session/training_start.h"
#include "engine/train/optimizer.h"
#include "partitioner/base/printable.h"
#include "partitioner/search/best_partition.h"
#include "partitioner/text/device_names.h"

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

DeviceChoice::DeviceChoice(const DeviceRequest& devices,
                           const PartitionRequest& partition,
                           const partitioner::Network& network,
                           const Workload& workload,
                           Index steps,
                           ClusterProfile cluster)
    : request_(devices), partition_(partition), cluster_(std::move(cluster)) {
  partition_.objective = partitioner::Objective::Time;
  if (is_of_energy(request_.objective) || request_.power_limit_w) {
    expect_known_powers(cluster_);
  }
  partitioner::DeviceSetOptions options;
  options.objective = request_.objective;
  options.limits.watts = request_.power_limit_w.value_or(options.limits.watts);
  if (request_.deadline_s) {
    options.limits.seconds = *request_.deadline_s / static_cast<double>(steps);
  }
  options.needed = requested_reader(partition_, cluster_.size()).single_rank();
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
    (void)search_automatically(network, cluster_, partition_, workload);  // says why
  }
}

std::optional<partitioner::Candidate> DeviceChoice::find(const std::vector<int>& devices,
                                                         const partitioner::Network& network,
                                                         const Workload& workload) const {
  const int ranks = static_cast<int>(devices.size());
  PartitionRequest request = partition_;
  if (const auto reader = requested_reader(partition_, cluster_.size()).single_rank()) {
    const auto its_place = std::find(devices.begin(), devices.end(), *reader) - devices.begin();
    request.reader = partitioner::Reader::rank(static_cast<int>(its_place));
  }
  partitioner::SearchResult result = search_with_baselines(
      network, devices_of(cluster_, devices), search_options(network, request, workload, ranks));
  if (result.candidates.empty()) {
    return std::nullopt;
  }
  partitioner::Candidate found = std::move(result.candidates.front());
  found.partition = on_ranks(std::move(found.partition), devices, cluster_.size());
  if (found.energy && request_.count_idle) {
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
  predicted.devices = set.devices;
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
  options.objective = request_.objective;
  options.steps = steps_of(size);
  options.deadline_s = request_.deadline_s.value_or(options.deadline_s);
  options.power_limit_w = request_.power_limit_w.value_or(options.power_limit_w);
  options.all = request_.try_all;
  if (metered && (is_of_energy(request_.objective) || request_.power_limit_w)) {
    options.least_trial_s = kLeastWithMeter_s;
  }
  std::vector<partitioner::PredictedSet> all;
  for (const DeviceSet& set : sets_) {
    all.push_back(predicted(set));
  }
  return DeviceTrials(std::move(all), options);
}

std::optional<std::string> DeviceChoice::why_none(const DeviceTrials& trials,
                                                  bool trials_to_come) const {
  if (trials.chosen() || (trials_to_come && trials.next())) {
    return std::nullopt;
  }
  const partitioner::SetOutlook closest = trials.ranking().front();
  return fmt::format(
      "no set of devices keeps the limits; {} comes closest: {}",
      printable(partitioner::listed_devices(device_names(cluster_), sets_[closest.set].devices)),
      printable(closest.pruned));
}

partitioner::ChoiceReport DeviceChoice::report(const DeviceTrials& trials,
                                               bool tried,
                                               bool estimated) const {
  partitioner::ChoiceReport report;
  report.objective = request_.objective;
  report.devices = device_names(cluster_);
  report.sets = sets_;
  report.ranking = trials.ranking();
  report.chosen = trials.chosen();
  report.steps = trials.steps();
  report.tried = tried;
  report.deadline_s = request_.deadline_s;
  report.power_limit_w = request_.power_limit_w;
  report.estimated = estimated;
  for (const partitioner::SetOutlook& outlook : report.ranking) {
    const auto& found = sets_[outlook.set].found;
    const bool by_table = !outlook.tried && found && found->energy && found->energy->estimated;
    report.estimated = report.estimated || by_table;
  }
  return report;
}

std::optional<TrialPower> DeviceChoice::trial_power(const DeviceSet& set,
                                                    const std::vector<RankTrial>& trials,
                                                    const std::vector<std::string>& hosts) const {
  TrialPower sum;
  const auto add = [&](double watts, double relative_error, bool estimated) {
    sum.watts.value += watts;
    sum.watts.error += watts * relative_error;
    sum.estimated = sum.estimated || estimated;
  };
  const MeasuredPower& together = trials.front().cluster;
  if (together.known) {
    const std::optional<double> others_w =
        request_.count_idle ? std::optional(0.0) : idle_w_beside(set.devices);
    if (!others_w) {
      return std::nullopt;
    }
    add(std::max(0.0, together.watts - *others_w), together.relative_error, together.estimated);
    return sum;
  }
  std::set<std::string> counted;  // machines
  for (int device = 0; device < cluster_.size(); ++device) {
    if (!has_part(set, device) && !request_.count_idle) {
      continue;
    }
    const auto rank = static_cast<std::size_t>(device);
    const RankTrial* metered = nullptr;  // the rank that reads the machine's meter
    for (std::size_t other = 0; other < hosts.size(); ++other) {
      if (hosts[other] == hosts[rank] && trials[other].board.known) {
        metered = &trials[other];
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
    const double computing = has_part(set, device) ? trials[rank].computing : 0;
    add(power->idle_w + computing * (power->busy_w.back() - power->idle_w),
        power->relative_error.value_or(0),
        power->estimated);
  }
  return sum;
}

namespace {

Index pictures_of(const TrainingRequest& request,
                  const partitioner::Network& network,
                  Split split) {
  return list_dataset(request.data,
                      split,
                      network.image.channels,
                      {.kind = target_kind(network), .allow_unlabelled = request.allow_unlabelled})
      .size();
}

}  // namespace

PredictedChoice predict_choice(const TrainingRequest& request, const SessionObserver& observer) {
  const partitioner::ModelFile model = load_model(request.model, Communicator::self(), observer);
  const partitioner::Network network =
      network_to_train(request, model.network, Communicator::self());
  partitioner::TrainingOptions training = training_options(request, model);
  expect_loss(network, request.model);
  const Index pictures = pictures_of(request, network, Split::Train);
  const TrainingLength length = training_length(request, pictures, training);
  const double testing =
      request.evaluate ? static_cast<double>(pictures_of(request, network, Split::Test)) : 0;
  const RunSize size{.steps = length.last_step,
                     .epoch_steps = length.epoch_steps,
                     .testing_steps = testing / static_cast<double>(training.batch)};
  const Workload workload{.model = request.model,
                          .batch = training.batch / training.subdivisions,
                          .passes = training.subdivisions,
                          .trained = trained_arrays(training)};
  const int devices = partitioner::read_cluster_profile(request.partition.cluster).size();
  const DeviceChoice choice(request.devices.value(),
                            request.partition,
                            network,
                            workload,
                            size.steps,
                            described_cluster(request.partition, devices, observer));
  const DeviceTrials trials = choice.trials(size);
  return {choice.report(trials, false), choice.why_none(trials, false)};
}

}  // namespace tessera::engine
