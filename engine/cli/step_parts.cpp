#include "engine/cli/step_parts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "partitioner/explain.h"
#include "partitioner/text_table.h"

namespace engine {

namespace {

double mean_of_ranks(double mine, const Communicator& communicator) {
  const std::vector<double> all = communicator.of_ranks(mine);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
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
          {"sums_s", "sums of gradients", parts.exchanges.sums_s},
          {"idle_s", "idle", parts.idle_s},
          {"step_s", "step", parts.step_s()}};
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
    sum.exchanges.sums_s += step.exchanges.sums_s;
  }
  const auto mean = [&](double seconds) {
    return mean_of_ranks(seconds, communicator) / static_cast<double>(times.size());
  };
  const double steps_s = std::accumulate(longest_s.begin(), longest_s.end(), 0.0);
  StepParts parts;
  parts.computing_s = mean(sum.step_s - sum.exchanges.total_s());
  parts.exchanges.maps_s = mean(sum.exchanges.maps_s);
  parts.exchanges.statistics_s = mean(sum.exchanges.statistics_s);
  parts.exchanges.sums_s = mean(sum.exchanges.sums_s);
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
  partitioner::SearchOptions options = prediction_options(network, choice, workload, partition);
  options.cost.has_loss = false;
  const partitioner::TimeShares time =
      time_shares(network, described_cluster(choice, partition.ranks), options, partition);
  return StepParts{
      time.computing_s(), {time.maps_s, time.statistics_s, time.gradients_s}, time.idle_s};
}

std::string parts_table(const StepParts& measured, const std::optional<StepParts>& predicted) {
  const auto cell = [](double seconds) { return fmt::format("{:.4f}", seconds); };
  std::vector<partitioner::Column> columns{{"", partitioner::Align::Left}, {"measured, s"}};
  if (predicted) {
    columns.push_back({"predicted, s"});
  }
  partitioner::TextTable table(columns);
  const std::vector<NamedPart> parts = named(measured);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<std::string> row{parts[i].name, cell(parts[i].seconds)};
    if (predicted) {
      row.push_back(cell(named(*predicted)[i].seconds));
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

}  // namespace engine
