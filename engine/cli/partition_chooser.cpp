#include "engine/cli/partition_chooser.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <malloc.h>
#include <set>

#include "engine/base/median.h"
#include "engine/cli/setup.h"
#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/data/dataset.h"
#include "engine/train/run_report.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

using partitioner::ClusterProfile;
using partitioner::DeviceSet;
using partitioner::DeviceTrials;
using partitioner::Estimate;
using partitioner::InputError;
using partitioner::Partition;

namespace {

constexpr const char* kChoiceFile = "choice.json";

// A picture that is tested takes its forward pass, about a third of what one that is trained on
// does.
constexpr double kTestingShare = 1.0 / 3;

double steps_of(const RunSize& size) {
  const double epochs = std::ceil(static_cast<double>(size.steps) /
                                  static_cast<double>(std::max<Index>(1, size.epoch_steps)));
  return static_cast<double>(size.steps) + kTestingShare * epochs * size.testing_steps;
}

// The middle of the steps, and how far it may be off by their spread.
Estimate step_estimate(const std::vector<double>& seconds) {
  constexpr double kLeast = 0.01;
  constexpr double kUnknown = 0.05;  // of a single step
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  const double middle = median(seconds);
  const double spread = (*most - *least) / 2 / std::sqrt(static_cast<double>(seconds.size()));
  return {middle, std::max(seconds.size() > 1 ? spread : kUnknown * middle, kLeast * middle)};
}

std::vector<std::string> names_of(const ClusterProfile& cluster) {
  std::vector<std::string> names;
  for (const partitioner::DeviceProfile& device : cluster.devices) {
    names.push_back(device.name);
  }
  return names;
}

// By the command line, with the data set where that counts epochs; 0: they do not tell.
double run_steps(const ChooseCommand& command,
                 const partitioner::Network& network,
                 const Workload& workload) {
  const TrainCommand& train = command.train;
  if (train.epochs <= 0 || !train.data_map.empty()) {
    return static_cast<double>(train.steps);
  }
  const Index pictures = list_dataset(train.data, Split::Train, network.image.channels).size();
  return std::ceil(static_cast<double>(train.epochs) * static_cast<double>(pictures) /
                   static_cast<double>(workload.batch * workload.passes));
}

// 0 means that there is none.
std::optional<double> limit(double of_command) {
  return of_command > 0 ? std::optional(of_command) : std::nullopt;
}

bool has_part(const DeviceSet& set, int device) {
  return std::binary_search(set.devices.begin(), set.devices.end(), device);
}

}  // namespace

DeviceChoice::DeviceChoice(const ChooseCommand& command,
                           const partitioner::Network& network,
                           const Workload& workload,
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
  if (const double steps = command.deadline_s > 0 ? run_steps(command, network, workload) : 0;
      steps > 0) {
    options.limits.seconds = command.deadline_s / steps;
  }
  const int reader = parse_reader(command.train.partition.reader, cluster_.size());
  if (reader != partitioner::kEveryRank) {
    options.needed = reader;
  }
  sets_ = search_device_sets(cluster_, options, [&](const std::vector<int>& devices) {
            return find(devices, network, workload);
          }).sets;
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
  if (const int reader = parse_reader(choice.reader, cluster_.size());
      reader != partitioner::kEveryRank) {
    choice.reader =
        std::to_string(std::find(devices.begin(), devices.end(), reader) - devices.begin());
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
    if (device != partition.reader && !std::binary_search(busy.begin(), busy.end(), device)) {
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
  throw InputError(fmt::format("no set of devices keeps the limits; {} comes closest: {}",
                               partitioner::printable(partitioner::device_names(
                                   names_of(cluster_), sets_[closest.set].devices)),
                               partitioner::printable(closest.pruned)));
}

partitioner::ChoiceReport DeviceChoice::report(const DeviceTrials& trials, bool tried) const {
  partitioner::ChoiceReport report;
  report.objective = objective_;
  report.devices = names_of(cluster_);
  report.sets = sets_;
  report.ranking = trials.ranking();
  report.chosen = trials.chosen();
  report.steps = trials.steps();
  report.tried = tried;
  report.deadline_s = limit(command_.deadline_s);
  report.power_limit_w = limit(command_.power_limit_w);
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

// The partition of an earlier choice on the ranks that its devices have now; nothing where there is
// none, or they are not all there.
std::optional<std::string> PartitionChooser::earlier_partition(const partitioner::Network& network,
                                                               const Workload& workload,
                                                               const ClusterProfile& cluster) {
  const std::filesystem::path checkpoint = command_.train.resume;
  if (checkpoint.empty()) {
    return std::nullopt;
  }
  constexpr Index kMostBytes = Index{64} << 20U;
  for (const auto& folder : {checkpoint.parent_path(), std::filesystem::path(command_.train.run)}) {
    const std::filesystem::path file = folder / kChoiceFile;
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      continue;
    }
    std::string json = partitioner::read_regular_file(file, "a choice of devices", kMostBytes);
    const auto earlier = partitioner::earlier_choice(json);
    if (!earlier) {
      continue;
    }
    if (earlier->objective != command_.objective ||
        earlier->deadline_s != limit(command_.deadline_s) ||
        earlier->power_limit_w != limit(command_.power_limit_w)) {
      warn(
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
        (before.reader != partitioner::kEveryRank &&
         !std::binary_search(ranks.begin(), ranks.end(), before.reader))) {
      warn(fmt::format("{}: its devices are not all there any more: they are chosen again",
                       file.string()));
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
                                            const Communicator& communicator) {
  hosts_ = hosts_of_ranks(communicator);
  std::optional<std::string> text;
  on_root(communicator, [&] {
    const ClusterProfile cluster = described_cluster(command_.train.partition, communicator.size());
    text = earlier_partition(network, workload, cluster);
    known_ = text.has_value();
    if (!text) {
      choice_.emplace(command_, network, workload, cluster);
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
      choice_->expect_choice(choice_->trials(size), true);
    }
  });
}

// Whether there was another set to try.
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
      say(fmt::format("trying {}, {} steps\n",
                      partitioner::printable(
                          partitioner::device_names(names_of(choice_->cluster()), set.devices)),
                      order.steps));
    }
  }
  order = communicator.share(order);
  if (order.set < 0) {
    return false;
  }
  current_ = partitioner::parse_partition(communicator.agree(text).value(), "choose");
  runs.change_to(current_, predicted_s);
  const TrialMeasurement measured = runs.take_steps(order.steps);
  const std::vector<RankTrial> of_ranks =
      communicator.of_ranks(RankTrial{measured.computing, measured.board, measured.cluster});
  steps_tried_ += order.steps;
  // Nothing where the run is over after the first step, which is not counted.
  if (!communicator.share(!measured.step_s.empty())) {
    return false;
  }
  if (communicator.rank() == 0) {
    const auto set = static_cast<std::size_t>(order.set);
    trials_->add(set,
                 {order.steps,
                  step_estimate(measured.step_s),
                  choice_->power_of(choice_->sets()[set], of_ranks, hosts_)});
  }
  return true;
}

void PartitionChooser::tell_choice(const TrialRuns& runs) {
  std::string json;
  on_root(runs.communicator, [&] {
    const partitioner::ChoiceReport report = choice_->report(*trials_, true);
    say(partitioner::choice_table(report));
    json = partitioner::choice_json(report);
    if (report.chosen) {
      const std::string line = partitioner::choice_line(report);
      say("chosen: " + partitioner::printable(line) + "\n");
      runs.tell("choose", line);
    }
  });
  runs.write(kChoiceFile, json);
  on_root(runs.communicator, [&] { choice_->expect_choice(*trials_, false); });
}

void PartitionChooser::choose(const TrialRuns& runs) {
  const Communicator& communicator = runs.communicator;
  if (known_) {
    runs.write(kChoiceFile, earlier_json_);
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
