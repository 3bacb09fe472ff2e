#include "engine/cli/step_parts.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "partitioner/base/text_table.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/report/explain.h"

namespace tessera::engine {

using partitioner::PassSeconds;

namespace {

double mean_of_ranks(double mine, const Communicator& communicator) {
  const std::vector<double> all = communicator.of_ranks(mine);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f}", 1e3 * seconds);
}

struct NamedPart {
  const char* key;
  const char* name;
  double seconds;
};

std::vector<NamedPart> named(const StepParts& parts) {
  return {{"computing_s", "computing", parts.computing_s},
          {"maps_s", "exchange of maps", parts.exchanges.maps_s},
          {"statistics_s", "statistics", parts.exchanges.statistics_s},
          {"sums_s", "gradient reduction", parts.exchanges.reduction_s},
          {"idle_s", "idle", parts.idle_s},
          {"step_s", "step", parts.step_s()}};
}

struct NamedPass {
  const char* key;
  const char* name;
  double PassSeconds::*seconds;
};
constexpr NamedPass kPasses[] = {{"forward_s", "forward", &PassSeconds::forward_s},
                                 {"backward_s", "backward", &PassSeconds::backward_s},
                                 {"weights_s", "weights", &PassSeconds::weights_s}};

nlohmann::ordered_json pass_json(const PassSeconds& seconds) {
  nlohmann::ordered_json json;
  for (const NamedPass& pass : kPasses) {
    json[pass.key] = seconds.*pass.seconds;
  }
  return json;
}

}  // namespace

StepParts measured_parts(const std::vector<StepTimes>& times,
                         const std::vector<double>& longest_s,
                         const Communicator& communicator) {
  StepTimes sum;
  for (const StepTimes& step : times) {
    sum.step_s += step.step_s;
    sum.exchanges.maps_s += step.exchanges.maps_s;
    sum.exchanges.statistics_s += step.exchanges.statistics_s;
    sum.exchanges.reduction_s += step.exchanges.reduction_s;
  }
  const auto mean = [&](double seconds) {
    return mean_of_ranks(seconds, communicator) / static_cast<double>(times.size());
  };
  const double steps_s = std::accumulate(longest_s.begin(), longest_s.end(), 0.0);
  StepParts parts;
  parts.computing_s = mean(sum.step_s - sum.exchanges.total_s());
  parts.exchanges.maps_s = mean(sum.exchanges.maps_s);
  parts.exchanges.statistics_s = mean(sum.exchanges.statistics_s);
  parts.exchanges.reduction_s = mean(sum.exchanges.reduction_s);
  parts.idle_s = mean(steps_s - sum.step_s);
  return parts;
}

std::optional<StepParts> predicted_parts(const PartitionChoice& choice,
                                         const partitioner::Network& network,
                                         const Workload& workload,
                                         const partitioner::Partition& partition) {
  if (!profiled_devices(choice)) {
    return std::nullopt;
  }
  const partitioner::TimeShares time =
      time_shares(network,
                  described_cluster(choice, partition.ranks),
                  prediction_options(network, choice, workload, partition),
                  partition);
  return StepParts{time.computing_s(),
                   {time.maps_s, time.statistics_s + time.loss_s, time.gradients_s},
                   time.idle_s};
}

std::string parts_table(const StepParts& measured, const std::optional<StepParts>& predicted) {
  std::vector<Column> columns{{"", Align::Left}, {"measured, ms"}};
  if (predicted) {
    columns.push_back({"predicted, ms"});
  }
  TextTable table(columns);
  const std::vector<NamedPart> parts = named(measured);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<std::string> row{parts[i].name, milliseconds(parts[i].seconds)};
    if (predicted) {
      row.push_back(milliseconds(named(*predicted)[i].seconds));
    }
    table.add_row(row);
  }
  return table.text();
}

nlohmann::ordered_json parts_json(const StepParts& parts) {
  nlohmann::ordered_json json;
  for (const NamedPart& part : named(parts)) {
    json[part.key] = part.seconds;
  }
  return json;
}

std::vector<LayerComputing> measured_layers(const std::vector<PassSeconds>& mine,
                                            Index steps,
                                            const Communicator& communicator) {
  const auto of_ranks = communicator.gather_all(std::as_bytes(std::span(mine)));
  std::vector<LayerComputing> layers(mine.size());
  for (const auto& bytes : of_ranks) {
    std::vector<PassSeconds> of_rank(mine.size());
    std::memcpy(of_rank.data(), bytes.data(), bytes.size());
    for (std::size_t layer = 0; layer < mine.size(); ++layer) {
      for (const NamedPass& pass : kPasses) {
        const double seconds = of_rank[layer].*pass.seconds / static_cast<double>(steps);
        double& mean = layers[layer].mean.*pass.seconds;
        double& most = layers[layer].most.*pass.seconds;
        mean += seconds / static_cast<double>(of_ranks.size());
        most = std::max(most, seconds);
      }
    }
  }
  return layers;
}

std::optional<std::vector<PassSeconds>> predicted_layers(const PartitionChoice& choice,
                                                         const partitioner::Network& network,
                                                         const Workload& workload,
                                                         const partitioner::Partition& partition) {
  if (!profiled_devices(choice)) {
    return std::nullopt;
  }
  return mean_computing(network,
                        described_cluster(choice, partition.ranks),
                        prediction_options(network, choice, workload, partition),
                        partition);
}

namespace {

// A step as it is priced and, where it is not too large for that, played through.
struct PlayedStep {
  partitioner::PricedStep priced;
  bool has_loss = true;  // among what is priced
  std::optional<partitioner::SimulatedStep> simulated;
};

PlayedStep played_step(const PartitionChoice& choice,
                       const partitioner::Network& network,
                       const Workload& workload,
                       const partitioner::Partition& partition,
                       const partitioner::Plan& plan) {
  const partitioner::ClusterProfile cluster = described_cluster(choice, partition.ranks);
  const partitioner::CostOptions cost =
      prediction_options(network, choice, workload, partition).cost;
  PlayedStep step{priced_step(network, plan, cluster, cost), cost.has_loss, std::nullopt};
  if (is_simulable(network, cluster.size())) {
    step.simulated = simulate(step.priced, cluster);
  }
  return step;
}

// Of an action of a played step: its number in the plan's schedule, which always has the loss.
int number_of(const PlayedStep& played,
              const partitioner::PricedAction& priced,
              const partitioner::Schedule& schedule) {
  const partitioner::Section& loss = schedule.loss;
  const bool is_behind = !played.has_loss && priced.number >= loss.begin;
  return priced.number + (is_behind ? loss.end - loss.begin : 0);
}

std::vector<std::vector<double>> action_seconds(const PlayedStep& played,
                                                const partitioner::Plan& plan) {
  const partitioner::PricedStep& step = played.priced;
  std::vector<std::vector<double>> result(static_cast<std::size_t>(plan.ranks),
                                          std::vector<double>(plan.schedule.actions.size(), -1));
  const auto add = [&](std::size_t rank, const partitioner::PricedAction& priced, double seconds) {
    double& sum = result[rank][static_cast<std::size_t>(number_of(played, priced, plan.schedule))];
    sum = std::max(sum, 0.0) + seconds;
  };
  for (const partitioner::PricedAction& priced : step.actions) {
    for (std::size_t rank = 0; rank < priced.seconds.size() && rank < result.size(); ++rank) {
      add(rank, priced, priced.seconds[rank]);
    }
  }
  if (played.simulated) {
    const partitioner::SimulatedStep& simulated = *played.simulated;
    for (std::size_t rank = 0; rank < result.size(); ++rank) {
      for (const partitioner::PricedAction& priced : step.actions) {
        if (priced.action.kind != partitioner::Action::Kind::Compute) {
          add(rank, priced, 0);
        }
      }
      for (const partitioner::TimelineSpan& span : simulated.timelines[rank]) {
        const auto& priced = step.actions[static_cast<std::size_t>(span.action)];
        if (priced.action.kind != partitioner::Action::Kind::Compute) {
          add(rank, priced, span.end_s - span.begin_s);
        }
      }
    }
  }
  return result;
}

// What a rank has to wait for at the end of a step counts as waiting.
StepShares shares_of(const PlayedStep& played, std::size_t rank, const partitioner::Plan& plan) {
  using Doing = partitioner::TimelineSpan::Doing;
  const partitioner::Schedule& schedule = plan.schedule;
  StepShares shares;
  double sum_s = 0;
  for (const partitioner::TimelineSpan& span : played.simulated->timelines[rank]) {
    const double seconds = span.end_s - span.begin_s;
    const int number =
        number_of(played, played.priced.actions[static_cast<std::size_t>(span.action)], schedule);
    sum_s += seconds;
    if (span.doing == Doing::Wait) {
      shares.waiting_s += seconds;
    } else if (span.doing != Doing::Compute) {
      shares.exchanging_s += seconds;
    } else if (number < schedule.forward.end) {
      shares.forward_s += seconds;
    } else if (number < schedule.backward.end) {
      shares.backward_s += seconds;
    } else {
      shares.update_s += seconds;
    }
  }
  shares.step_s = played.simulated->step_s;
  shares.waiting_s += std::max(shares.step_s - sum_s, 0.0);
  return shares;
}

}  // namespace

std::vector<std::vector<double>> predicted_actions(const PartitionChoice& choice,
                                                   const partitioner::Network& network,
                                                   const Workload& workload,
                                                   const partitioner::Partition& partition,
                                                   const partitioner::Plan& plan) {
  if (!profiled_devices(choice)) {
    return {};
  }
  return action_seconds(played_step(choice, network, workload, partition, plan), plan);
}

PredictedSteps predicted_steps(const PartitionChoice& choice,
                               const partitioner::Network& network,
                               const Workload& workload,
                               const partitioner::Partition& partition,
                               const partitioner::Plan& plan) {
  if (profiled_devices(choice).value_or(0) < partition.ranks) {
    return {};
  }
  const PlayedStep played = played_step(choice, network, workload, partition, plan);
  PredictedSteps steps;
  steps.step_s = time_shares(network,
                             described_cluster(choice, partition.ranks),
                             prediction_options(network, choice, workload, partition),
                             partition)
                     .step_s();
  steps.actions_s = action_seconds(played, plan);
  for (std::size_t rank = 0; played.simulated && rank < steps.actions_s.size(); ++rank) {
    steps.per_rank.push_back(shares_of(played, rank, plan));
  }
  return steps;
}

std::string layers_table(const partitioner::Network& network,
                         const std::vector<LayerComputing>& measured,
                         const std::optional<std::vector<PassSeconds>>& predicted) {
  std::vector<Column> columns{{"layer"}, {"kind", Align::Left}};
  for (const NamedPass& pass : kPasses) {
    columns.push_back({fmt::format("{}, ms", pass.name)});
    columns.push_back({"most"});
    if (predicted) {
      columns.push_back({"predicted"});
    }
  }
  TextTable table(columns);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    std::vector<std::string> row{fmt::format("{}", i),
                                 partitioner::kind_name(network.layers[i].operation)};
    for (const NamedPass& pass : kPasses) {
      row.push_back(milliseconds(measured[i].mean.*pass.seconds));
      row.push_back(milliseconds(measured[i].most.*pass.seconds));
      if (predicted) {
        row.push_back(milliseconds((*predicted)[i].*pass.seconds));
      }
    }
    table.add_row(row);
  }
  return table.text();
}

nlohmann::ordered_json layers_json(const std::vector<LayerComputing>& measured,
                                   const std::optional<std::vector<PassSeconds>>& predicted) {
  auto json = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < measured.size(); ++i) {
    nlohmann::ordered_json layer{{"mean", pass_json(measured[i].mean)},
                                 {"most", pass_json(measured[i].most)}};
    if (predicted) {
      layer["predicted"] = pass_json((*predicted)[i]);
    }
    json.push_back(std::move(layer));
  }
  return json;
}

}  // namespace tessera::engine
