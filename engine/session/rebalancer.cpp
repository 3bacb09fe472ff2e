#include "engine/session/rebalancer.h"

#include <algorithm>
#include <fmt/format.h>
#include <malloc.h>

#include "engine/comm/agreement.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"
#include "partitioner/search/search.h"

namespace tessera::engine {

using partitioner::ClusterProfile;
using partitioner::Partition;

namespace {

std::string slowest_words(const ClusterProfile& cluster, const std::vector<double>& slowness) {
  std::size_t slowest = 0;
  std::size_t fastest = 0;
  for (std::size_t i = 0; i < slowness.size(); ++i) {
    slowest = slowness[i] > slowness[slowest] ? i : slowest;
    fastest = slowness[i] < slowness[fastest] ? i : fastest;
  }
  const auto words = [&](std::size_t i) {
    return fmt::format("{} takes {:.2g} times as long as profiled",
                       cluster.device(static_cast<int>(i)).name,
                       slowness[i]);
  };
  return slowest == fastest ? words(slowest)
                            : fmt::format("{}, {}", words(slowest), words(fastest));
}

}  // namespace

bool should_rebalance(const TrainingRequest& request, bool several_sizes) {
  const PartitionRequest& partition = request.partition;
  const auto precision = partition.gradient_precision.value_or(partitioner::Compression::Exact);
  // A checkpoint to resume may have been trained with inputs of several sizes.
  const bool one_size =
      request.multi_scale ? *request.multi_scale == 0 : !several_sizes && request.resume.empty();
  return partition.automatic && !partition.cluster.empty() && !request.devices &&
         partition.cut.replicas.value_or(1) == 1 && !precision.by_runs() &&
         request.data_map.empty() && one_size;
}

Rebalancer::Rebalancer(const partitioner::Network& network,
                       const PartitionRequest& request,
                       const Workload& workload,
                       const Communicator& communicator,
                       const SessionObserver& observer)
    : network_(network),
      request_(request),
      workload_(workload),
      communicator_(communicator),
      watch_(communicator.size()) {
  on_root(communicator,
          [&] { cluster_ = described_cluster(request, communicator.size(), observer); });
}

std::optional<Partition> Rebalancer::next(const partitioner::Network& trained,
                                          const Partition& current,
                                          double computing_s,
                                          Index steps_left) {
  const std::vector<double> measured_s = communicator_.of_ranks(computing_s);
  std::optional<std::string> text;
  on_root(communicator_, [&] {
    const auto found = search(trained, current, measured_s, steps_left);
    text = found ? to_text(*found) : "";
    ::malloc_trim(0);  // of what the search freed, for what training takes
  });
  const std::string agreed_text = communicator_.agree(text).value();
  if (agreed_text.empty()) {
    return std::nullopt;
  }
  return partitioner::parse_partition(agreed_text, "--rebalance");
}

std::optional<Partition> Rebalancer::search(const partitioner::Network& trained,
                                            const Partition& current,
                                            const std::vector<double>& measured_s,
                                            Index steps_left) {
  const auto options = prediction_options(trained, request_, workload_, current);
  const auto predicted_s = computing_seconds(
      trained, make_plan(trained, current, workload_.batch), cluster_, options.cost);
  const auto slowness = watch_.add_window(measured_s, predicted_s);
  const double begun_s = now_s();
  if (!slowness || !watch_.may_search(begun_s)) {
    return std::nullopt;
  }
  const ClusterProfile slow = slowed(cluster_, *slowness);
  watch_.settle(*slowness);
  const Partition found = best_for(slow, current);
  const double step_s = step_seconds(slow, current);
  const double then_s = step_seconds(slow, found);
  const double ended_s = now_s();
  watch_.note_search(begun_s, ended_s);
  // The search has to be made again before another change.
  if (found == current ||
      !watch_.is_worth_while(step_s, then_s, steps_left, ended_s - begun_s + step_s)) {
    return std::nullopt;
  }
  reason_ = fmt::format("{}: a step should take {:.3g} s instead of {:.3g} s",
                        slowest_words(cluster_, *slowness),
                        then_s,
                        step_s);
  return found;
}

// Pictures are read by those who read them now: the others have not opened any.
Partition Rebalancer::best_for(const ClusterProfile& cluster, const Partition& current) const {
  PartitionRequest request = request_;
  request.reader = current.reader;
  try {
    return search_automatically(network_, cluster, request, workload_);
  } catch (const InputError&) {  // nothing else fits into memory
    return current;
  }
}

double Rebalancer::step_seconds(const ClusterProfile& cluster, const Partition& partition) const {
  return evaluated(network_,
                   cluster,
                   prediction_options(network_, request_, workload_, partition),
                   partition)
      .predicted_s();
}

bool take_rebalanced_steps(const RebalancedRun& run, Partition current, Rebalancer& rebalancer) {
  constexpr Index kFewest = 5;
  Index steps = kFewest;
  for (Index done = run.first_step; done + 1 < run.last_step;) {
    const StepWindow window = run.take_steps(steps);
    if (window.enough) {
      return true;
    }
    done = window.steps_done;
    if (window.step_s <= 0) {
      continue;
    }
    if (const auto next =
            rebalancer.next(*window.network, current, window.computing_s, run.last_step - done)) {
      current = *next;
      run.go_on_by(current, rebalancer.reason());
    }
    steps = std::max(kFewest, static_cast<Index>(run.window_s / window.step_s));
  }
  return false;
}

}  // namespace tessera::engine
