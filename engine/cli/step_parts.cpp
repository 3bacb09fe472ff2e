#include "engine/cli/step_parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "partitioner/base/text_table.h"

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
  const std::vector<std::vector<PassSeconds>> of_ranks = communicator.of_ranks(mine);
  std::vector<LayerComputing> layers(mine.size());
  for (const std::vector<PassSeconds>& of_rank : of_ranks) {
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
