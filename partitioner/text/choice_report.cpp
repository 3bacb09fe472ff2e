#include "partitioner/text/choice_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "partitioner/base/json_value.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/text/device_names.h"

namespace tessera::partitioner {

namespace {

using OrderedJson = nlohmann::ordered_json;

// "875 J +-7 %", with the value as it is to be written.
std::string with_error(const Estimate& estimate, const std::string& value) {
  const double share = estimate.value > 0 ? estimate.error / estimate.value : 0;
  return fmt::format("{} +-{:.0f} %", value, 100 * share);
}

std::string four_digits(const Estimate& estimate, const char* unit = "") {
  return with_error(estimate, fmt::format("{:.4g}{}", estimate.value, unit));
}

OrderedJson value(const std::optional<Estimate>& of) {
  return of ? OrderedJson(of->value) : OrderedJson();
}

// Nothing where there is no such limit, or nobody said.
std::optional<double> limit(const OrderedJson& choice, const char* key) {
  const auto found = choice.find(key);
  return found == choice.end() || found->is_null() ? std::nullopt
                                                   : std::optional(found->get<double>());
}

OrderedJson error(const std::optional<Estimate>& of) {
  return of ? OrderedJson(of->error) : OrderedJson();
}

const DeviceSet& set_of(const ChoiceReport& report, const SetOutlook& outlook) {
  return report.sets[outlook.set];
}

const char* objective_words(Objective objective) {
  switch (objective) {
    case Objective::Time:
      return "least time";
    case Objective::Memory:
      return "least memory";
    case Objective::Power:
      return "least power";
    case Objective::Energy:
      return "least energy";
    case Objective::EnergyDelay:
      return "least energy-delay product";
  }
  return "";
}

OrderedJson candidate_json(const ChoiceReport& report, const SetOutlook& outlook) {
  const DeviceSet& set = set_of(report, outlook);
  OrderedJson devices = OrderedJson::array();
  for (const int device : set.devices) {
    devices.push_back(report.devices[static_cast<std::size_t>(device)]);
  }
  const bool fits = set.found.has_value();
  return {
      {"devices", devices},
      {"partition", fits ? OrderedJson(to_text(set.found->partition)) : OrderedJson()},
      {"predicted_step_s", fits ? OrderedJson(set.found->predicted_s()) : OrderedJson()},
      {"measured_step_s", outlook.tried ? OrderedJson(outlook.tried->step_s.value) : OrderedJson()},
      {"time_s", fits ? OrderedJson(outlook.time_s.value) : OrderedJson()},
      {"power_w", value(outlook.power_w)},
      {"energy_j", value(outlook.energy_j)},
      {"edp_js", value(outlook.energy_delay_js)},
      {"tried_steps", outlook.tried ? outlook.tried->steps : 0},
      {"pruned", outlook.pruned.empty() ? OrderedJson() : OrderedJson(outlook.pruned)}};
}

}  // namespace

std::string choice_table(const ChoiceReport& report) {
  constexpr std::size_t kDevices = 22;
  constexpr std::size_t kReason = 38;
  TextTable table({{"", Align::Left},
                   {"devices", Align::Left},
                   {"predicted"},
                   {"measured"},
                   {"run, s"},
                   {"W"},
                   {"J"},
                   {"J s"},
                   {"steps"},
                   {"", Align::Left}});
  for (const SetOutlook& outlook : report.ranking) {
    const DeviceSet& set = set_of(report, outlook);
    const bool fits = set.found.has_value();
    table.add_row(
        {outlook.set == report.chosen ? "*" : "",
         shortened(printable(listed_devices(report.devices, set.devices)), kDevices),
         fits ? fmt::format("{:.4g}", set.found->predicted_s()) : "",
         outlook.tried ? fmt::format("{:.4g}", outlook.tried->step_s.value) : "",
         fits ? four_digits(outlook.time_s) : "",
         outlook.power_w ? fmt::format("{:.3g}", outlook.power_w->value) : "",
         outlook.energy_j ? fmt::format("{:.4g}", outlook.energy_j->value) : "",
         outlook.energy_delay_js ? fmt::format("{:.3g}", outlook.energy_delay_js->value) : "",
         outlook.tried ? std::to_string(outlook.tried->steps) : "",
         shortened(printable(outlook.pruned), kReason)});
  }
  return fmt::format("Devices for {}, of {}{}.\nSeconds of a step, then what a run would take:\n",
                     objective_words(report.objective),
                     counted(std::ssize(report.devices), "device"),
                     report.estimated ? "; powers are estimates by the kind of board" : "") +
         table.text();
}

std::string choice_line(const ChoiceReport& report) {
  const auto chosen =
      std::find_if(report.ranking.begin(), report.ranking.end(), [&](const SetOutlook& outlook) {
        return outlook.set == report.chosen;
      });
  if (chosen == report.ranking.end()) {
    return "none";
  }
  const auto estimate = [](const std::optional<Estimate>& known) {
    return known.value_or(Estimate());
  };
  std::string what;
  switch (report.objective) {
    case Objective::Time:
    case Objective::Memory:
      what = four_digits(chosen->time_s, " s") + " for the run";
      break;
    case Objective::Power:
      what = four_digits(estimate(chosen->power_w), " W");
      break;
    case Objective::Energy: {
      const Estimate energy_j = estimate(chosen->energy_j);
      what = with_error(energy_j, readable_energy(energy_j.value)) + " for the run";
      break;
    }
    case Objective::EnergyDelay:
      what = four_digits(estimate(chosen->energy_delay_js), " J s") + " for the run";
      break;
  }
  return fmt::format("{} for {}: {}, {}",
                     listed_devices(report.devices, set_of(report, *chosen).devices),
                     objective_words(report.objective),
                     what,
                     chosen->tried ? "by trials" : "by prediction");
}

std::string choice_json(const ChoiceReport& report) {
  OrderedJson candidates = OrderedJson::array();
  OrderedJson uncertainty = OrderedJson::array();
  OrderedJson chosen;
  for (const SetOutlook& outlook : report.ranking) {
    if (outlook.set == report.chosen) {
      chosen = candidates.size();
    }
    candidates.push_back(candidate_json(report, outlook));
    uncertainty.push_back({{"time_s", outlook.time_s.error},
                           {"power_w", error(outlook.power_w)},
                           {"energy_j", error(outlook.energy_j)},
                           {"edp_js", error(outlook.energy_delay_js)}});
  }
  const OrderedJson json{{"objective", name_of(report.objective)},
                         {"chosen", chosen},
                         {"candidates", candidates},
                         {"uncertainty", uncertainty},
                         {"steps", report.steps},
                         {"tried", report.tried},
                         {"power_estimated", report.estimated},
                         {"deadline_s", or_null<OrderedJson>(report.deadline_s)},
                         {"power_limit_w", or_null<OrderedJson>(report.power_limit_w)}};
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::optional<EarlierChoice> earlier_choice(const std::string& json) {
  const OrderedJson choice = OrderedJson::parse(json, nullptr, false);
  try {
    if (!choice.is_object() || !choice.at("tried").get<bool>()) {
      return std::nullopt;
    }
    const OrderedJson& chosen = choice.at("candidates").at(choice.at("chosen").get<std::size_t>());
    return EarlierChoice{chosen.at("devices").get<std::vector<std::string>>(),
                         chosen.at("partition").get<std::string>(),
                         choice.at("objective").get<std::string>(),
                         limit(choice, "deadline_s"),
                         limit(choice, "power_limit_w")};
  } catch (const OrderedJson::exception&) {
    return std::nullopt;
  }
}

}  // namespace tessera::partitioner
