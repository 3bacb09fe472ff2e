// Alternatives as text and as JSON.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "partitioner/base/json_value.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/text/alternatives.h"

namespace tessera::partitioner {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kAlternativesWidth = 100;

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "";
}

template <class Part>
std::optional<double> of_energy(const Alternative& alternative, const Part& part) {
  return alternative.energy ? std::optional<double>(part(*alternative.energy)) : std::nullopt;
}

std::optional<double> power_w(const Alternative& alternative) {
  return of_energy(alternative, [](const StepEnergy& energy) { return energy.power_w(); });
}
std::optional<double> energy_j(const Alternative& alternative) {
  return of_energy(alternative, [](const StepEnergy& energy) { return energy.energy_j; });
}
std::optional<double> energy_delay_js(const Alternative& alternative) {
  return of_energy(alternative, [](const StepEnergy& energy) { return energy.energy_delay_js(); });
}

}  // namespace

std::string alternatives_table(const Alternatives& alternatives) {
  if (alternatives.all.empty()) {
    return "";
  }
  constexpr std::size_t kNames = 19;
  TextTable table({{"", Align::Left},
                   {"step, s"},
                   {"epoch, s"},
                   {"W"},
                   {"J/step"},
                   {"J s"},
                   {"MiB"},
                   {"times"},
                   {"devices", Align::Left}});
  bool estimated = false;
  for (const Alternative& each : alternatives.all) {
    estimated = estimated || (each.energy && each.energy->estimated);
    const std::string devices =
        each.devices.empty() ? "all" : shortened(printable(each.devices), kNames);
    table.add_row({each.name,
                   number(each.step_s),
                   number(each.epoch_s),
                   number(power_w(each)),
                   number(energy_j(each)),
                   number(energy_delay_js(each)),
                   each.most_bytes ? mebibytes(*each.most_bytes) + (each.fits ? "" : " !") : "",
                   each.ratio ? fmt::format("{:.2f}", *each.ratio) : "",
                   each.exact ? devices : devices + ", not exact"});
  }
  const bool of_energy = is_of_energy(alternatives.compared);
  std::string text = fmt::format(
      "What else could be done with these devices. Times: {} by what the chosen partition does.\n",
      of_energy ? fmt::format("what it takes of {}", name_of(alternatives.compared))
                : "what it takes");
  if (estimated) {
    text += "Powers are estimates by the kind of board.\n";
  }
  text += table.text();
  for (const std::string& sentence : alternatives.why) {
    text += in_lines(printable(sentence), kAlternativesWidth, 0) + "\n";
  }
  return text;
}

std::string alternatives_json(const Alternatives& alternatives) {
  OrderedJson json{{"alternatives", OrderedJson::array()},
                   {"compared", name_of(alternatives.compared)},
                   {"images_by_devices", OrderedJson::array()},
                   {"why", alternatives.why}};
  for (const Alternative& each : alternatives.all) {
    json["alternatives"].push_back({{"name", each.name},
                                    {"devices", each.devices},
                                    {"step_s", or_null<OrderedJson>(each.step_s)},
                                    {"epoch_s", or_null<OrderedJson>(each.epoch_s)},
                                    {"power_w", or_null<OrderedJson>(power_w(each))},
                                    {"energy_j", or_null<OrderedJson>(energy_j(each))},
                                    {"edp_js", or_null<OrderedJson>(energy_delay_js(each))},
                                    {"most_bytes", or_null<OrderedJson>(each.most_bytes)},
                                    {"fits", each.fits},
                                    {"exact", each.exact},
                                    {"ratio", or_null<OrderedJson>(each.ratio)}});
  }
  for (const SharedImages& shared : alternatives.shared) {
    json["images_by_devices"].push_back({{"devices", shared.devices},
                                         {"step_s", shared.step_s},
                                         {"limited_by", shared.limited_by}});
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace tessera::partitioner
