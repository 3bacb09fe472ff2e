#include "engine/cli/step_parts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "partitioner/base/text_table.h"

namespace tessera::engine {

using partitioner::PassSeconds;

namespace {

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
