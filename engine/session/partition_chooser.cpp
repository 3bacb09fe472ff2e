#include "engine/session/partition_chooser.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <malloc.h>

#include "engine/base/median.h"
#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/run_files/names.h"
#include "engine/system/clock.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"
#include "partitioner/text/device_names.h"

namespace tessera::engine {

using partitioner::ClusterProfile;
using partitioner::DeviceSet;
using partitioner::DeviceTrials;
using partitioner::Estimate;
using partitioner::Partition;

namespace {

// The middle of the steps, and how far it may be off by their spread; how far a single step is off
// is a part of the noise that DeviceTrials finds in trials.
Estimate step_estimate(const std::vector<double>& seconds) {
  constexpr double kLeast = 0.01;
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  const double middle = median(seconds);
  const double spread = (*most - *least) / 2 / std::sqrt(static_cast<double>(seconds.size()));
  return {middle, std::max(spread, kLeast * middle)};
}

void expect_some(const std::optional<std::string>& why_none) {
  if (why_none) {
    throw InputError(*why_none);
  }
}

}  // namespace

// The partition of an earlier choice on the ranks that its devices have now; nothing where there is
// none, or they are not all there.
std::optional<std::string> PartitionChooser::earlier_partition(const partitioner::Network& network,
                                                               const Workload& workload,
                                                               const ClusterProfile& cluster) {
  const std::filesystem::path checkpoint = request_.resume;
  if (checkpoint.empty()) {
    return std::nullopt;
  }
  constexpr Index kMostBytes = Index{64} << 20U;
  for (const auto& folder : {checkpoint.parent_path(), std::filesystem::path(request_.run)}) {
    const std::filesystem::path file = folder / run_file::kChoice;
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      continue;
    }
    std::string json = read_regular_file(file, "a choice of devices", kMostBytes);
    const auto earlier = partitioner::earlier_choice(json);
    if (!earlier) {
      continue;
    }
    const DeviceRequest& asked = request_.devices.value();
    if (earlier->objective != name_of(asked.objective) || earlier->deadline_s != asked.deadline_s ||
        earlier->power_limit_w != asked.power_limit_w) {
      observer_.warn(
          fmt::format("{}: it was made for another objective or other limits: devices are chosen "
                      "again",
                      file.string()));
      return std::nullopt;
    }
    const Partition before = partitioner::parse_partition(earlier->partition, file.string());
    const std::vector<int> ranks = busy_ranks(before);
    std::vector<int> devices;
    for (const std::string& name : earlier->devices) {
      for (int device = 0; device < cluster.size(); ++device) {
        if (cluster.device(device).name == name) {
          devices.push_back(device);
        }
      }
    }
    if (ranks.size() != earlier->devices.size() || devices.size() != ranks.size() ||
        (!before.reader.is_every_rank() &&
         !std::binary_search(ranks.begin(), ranks.end(), before.reader.first_rank()))) {
      observer_.warn(fmt::format(
          "{}: its devices are not all there any more: they are chosen again", file.string()));
      return std::nullopt;
    }
    Partition now = on_ranks(of_ranks(before, ranks), devices, cluster.size());
    validate(now, network, workload.batch, file.string());
    earlier_json_ = std::move(json);
    return to_text(now);
  }
  return std::nullopt;
}

Partition PartitionChooser::first_partition(const partitioner::Network& network,
                                            const Workload& workload,
                                            Index steps,
                                            const Communicator& communicator) {
  hosts_ = hosts_of_ranks(communicator);
  std::optional<std::string> text;
  on_root(communicator, [&] {
    const ClusterProfile cluster =
        described_cluster(request_.partition, communicator.size(), observer_);
    text = earlier_partition(network, workload, cluster);
    known_ = text.has_value();
    if (!text) {
      observer_.say(fmt::format("searching for the best partition of each set of the {} devices\n",
                                cluster.size()));
      choice_.emplace(
          request_.devices.value(), request_.partition, network, workload, steps, cluster);
      text = to_text(choice_->first_partition());
    }
    ::malloc_trim(0);  // of what searches freed, for what training takes
  });
  known_ = communicator.share(known_);
  current_ = partitioner::parse_partition(communicator.agree(text).value(), "choose");
  return current_;
}

void PartitionChooser::expect_feasible(const RunSize& size,
                                       const Communicator& communicator) const {
  on_root(communicator, [&] {
    if (choice_) {
      expect_some(choice_->why_none(choice_->trials(size), true));
    }
  });
}

// Whether there was another trial to make.
bool PartitionChooser::try_next(const TrialRuns& runs) {
  const Communicator& communicator = runs.communicator;
  const Index left = runs.size.steps - runs.size.first_step - steps_tried_ - 1;
  struct Order {
    std::int64_t set = -1;
    std::int64_t steps = 0;
  } order;
  std::optional<std::string> text;
  std::optional<double> predicted_s;
  if (communicator.rank() == 0 && left > 0) {
    if (const auto next = trials_->next()) {
      const DeviceSet& set = choice_->sets()[*next];
      order = {static_cast<std::int64_t>(*next), std::min(trials_->steps_of(*next), left)};
      text = to_text(set.found->partition);
      predicted_s = set.found->predicted_s();
      observer_.say(fmt::format(
          "trying {}{}, {} steps\n",
          printable(partitioner::listed_devices(device_names(choice_->cluster()), set.devices)),
          trials_->trials_of(*next) > 0 ? " again" : "",
          order.steps));
    }
  }
  order = communicator.share(order);
  if (order.set < 0) {
    return false;
  }
  current_ = partitioner::parse_partition(communicator.agree(text).value(), "choose");
  const double started_s = now_s();
  runs.change_to(current_, predicted_s);
  const TrialMeasurement measured = runs.take_steps(order.steps);
  const std::vector<RankTrial> rank_trials =
      communicator.of_ranks(RankTrial{measured.computing, measured.board, measured.cluster});
  steps_tried_ += order.steps;
  // Nothing where the run is over after the first step, which is not counted.
  if (!communicator.share(!measured.step_s.empty())) {
    return false;
  }
  if (communicator.rank() == 0) {
    const auto set = static_cast<std::size_t>(order.set);
    const auto power = choice_->trial_power(choice_->sets()[set], rank_trials, hosts_);
    estimated_ = estimated_ || (power && power->estimated);
    trials_->add(set,
                 {order.steps,
                  step_estimate(measured.step_s),
                  power ? std::optional(power->watts) : std::nullopt,
                  now_s() - started_s});
  }
  return true;
}

void PartitionChooser::tell_choice(const TrialRuns& runs) {
  std::string json;
  on_root(runs.communicator, [&] {
    const partitioner::ChoiceReport report = choice_->report(*trials_, true, estimated_);
    observer_.say(partitioner::choice_table(report));
    json = partitioner::choice_json(report);
    if (report.chosen) {
      const std::string line = partitioner::choice_line(report);
      observer_.say("chosen: " + printable(line) + "\n");
      runs.tell("choose", line);
    }
  });
  runs.write(run_file::kChoice, json);
  on_root(runs.communicator, [&] { expect_some(choice_->why_none(*trials_, false)); });
}

void PartitionChooser::choose(const TrialRuns& runs) {
  const Communicator& communicator = runs.communicator;
  if (known_) {
    runs.write(run_file::kChoice, earlier_json_);
    runs.change_to(current_, std::nullopt);
    return;
  }
  if (communicator.rank() == 0) {
    trials_ = choice_->trials(runs.size, runs.metered);
  }
  while (try_next(runs)) {
  }
  tell_choice(runs);
  std::optional<std::string> text;
  std::optional<double> predicted_s;
  if (communicator.rank() == 0) {
    const partitioner::Candidate& found = choice_->sets()[trials_->chosen().value()].found.value();
    text = to_text(found.partition);
    predicted_s = found.predicted_s();
    choice_.reset();
    trials_.reset();
  }
  Partition chosen = partitioner::parse_partition(communicator.agree(text).value(), "choose");
  if (steps_tried_ == 0 || chosen != current_) {
    current_ = std::move(chosen);
    runs.change_to(current_, predicted_s);
  }
}

}  // namespace tessera::engine
