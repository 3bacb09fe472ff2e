// An explanation as text and as JSON.

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/cost/board_power.h"
#include "partitioner/text/explain.h"
#include "partitioner/text/plan_answer.h"

namespace tessera::partitioner {

namespace {

using OrderedJson = nlohmann::ordered_json;

struct TimeShareRow {
  const char* title;
  const char* key;
  double TimeShares::*part;
};

constexpr TimeShareRow kTimeShareRows[] = {
    {"forward", "forward_s", &TimeShares::forward_s},
    {"backward data", "backward_data_s", &TimeShares::backward_data_s},
    {"backward weights", "backward_weights_s", &TimeShares::backward_weights_s},
    {"other layers", "other_s", &TimeShares::other_s},
    {"recomputing", "recompute_s", &TimeShares::recompute_s},
    {"update", "update_s", &TimeShares::update_s},
    {"exchange of maps", "maps_s", &TimeShares::maps_s},
    {"statistics", "statistics_s", &TimeShares::statistics_s},
    {"gradient reduction", "gradients_s", &TimeShares::gradients_s},
    {"loss", "loss_s", &TimeShares::loss_s},
    {"synchronisation", "synchronisation_s", &TimeShares::synchronisation_s},
    {"idle", "idle_s", &TimeShares::idle_s}};
constexpr TimeShareRow kPartRows[] = {
    {"of which redundant", "redundant_s", &TimeShares::redundant_s},
    {"of which waiting", "waiting_s", &TimeShares::waiting_s}};

std::string seconds_number(double value) {
  return value >= 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.4f}", value);
}

// Watts and energies of a step in words; empty where they are unknown.
std::string energy_line(const std::optional<StepEnergy>& energy) {
  if (!energy) {
    return "";
  }
  return fmt::format("Predicted power: {} W; {} and {} s per step{}\n",
                     two_digits(energy->power_w()),
                     predicted_energy(energy->energy_j),
                     predicted_energy(energy->energy_delay_js()),
                     energy->estimated
                         ? fmt::format(" (estimated, +-{:g} %)",
                                       100 * energy->relative_error.value_or(kTableError))
                         : "");
}

std::string memory(const ExplainedPlan& plan) {
  return plan.most_bytes ? mebibytes(*plan.most_bytes) + (plan.fits ? "" : " !") : "";
}

template <class Cell>
void add_row(TextTable& table,
             const char* title,
             const std::vector<ExplainedPlan>& plans,
             Cell cell) {
  std::vector<std::string> cells{title};
  for (const ExplainedPlan& plan : plans) {
    cells.push_back(cell(plan));
  }
  table.add_row(std::move(cells));
}

std::string plans_table(const std::vector<ExplainedPlan>& plans) {
  std::vector<Column> columns{{"", Align::Left}};
  for (const ExplainedPlan& plan : plans) {
    columns.push_back({plan.name});
  }
  TextTable table(columns);
  for (const TimeShareRow& row : kTimeShareRows) {
    const auto has_none = [&row](const auto& plan) { return plan.time.*row.part == 0; };
    if (row.part != &TimeShares::synchronisation_s ||
        !std::all_of(plans.begin(), plans.end(), has_none)) {
      add_row(table, row.title, plans, [&](const auto& plan) {
        return seconds_number(plan.time.*row.part);
      });
    }
  }
  add_row(
      table, "step", plans, [](const auto& plan) { return seconds_number(plan.time.step_s()); });
  for (const TimeShareRow& row : kPartRows) {
    add_row(table, row.title, plans, [&](const auto& plan) {
      return seconds_number(plan.time.*row.part);
    });
  }
  add_row(table, "groups", plans, [](const auto& plan) { return std::to_string(plan.groups()); });
  add_row(table, "memory, MiB", plans, memory);
  return table.text();
}

std::string counts_table(const std::vector<ExplainedCount>& counts) {
  TextTable table(
      {{"devices"}, {"step, s"}, {"speed-up"}, {"memory, MiB"}, {"limited by", Align::Left}});
  double first_s = 0;
  int first_devices = 0;
  const ExplainedPlan* first = nullptr;
  std::string reasons;
  for (const ExplainedCount& count : counts) {
    if (!count.best) {
      table.add_row({std::to_string(count.devices), "", "", "", "memory: nothing fits"});
      continue;
    }
    const double step_s = count.best->time.step_s();
    if (first_devices == 0) {
      first_s = step_s;
      first_devices = count.devices;
      first = &*count.best;
    }
    const double share = static_cast<double>(count.devices) / first_devices;
    if (const std::string why = why_faster(*first, *count.best, share); !why.empty()) {
      reasons += fmt::format(
          "{} devices are more than {:.3g} times as fast: {}\n", count.devices, share, why);
    }
    table.add_row({std::to_string(count.devices),
                   seconds_number(step_s),
                   fmt::format("{:.2f}", first_s / step_s),
                   memory(*count.best),
                   what_limits(count.best->time)});
  }
  return table.text() + reasons;
}

void add_time(const TimeShares& time, OrderedJson& json) {
  json["step_s"] = time.step_s();
  for (const TimeShareRow& row : kTimeShareRows) {
    json[row.key] = time.*row.part;
  }
  for (const TimeShareRow& row : kPartRows) {
    json[row.key] = time.*row.part;
  }
}

// A step of a post-local run's first part: the same exchange in each step.
double first_part_step_s(const ExplainedReplicas& replicas) {
  return replicas.replica_s + replicas.cost.exchange_s;
}

OrderedJson synchronisation_json(const ExplainedPlan& plan) {
  const Replicas& replicas = plan.partition.replicas;
  const SynchronisationCost& cost = plan.replicas->cost;
  OrderedJson json = {{"replicas", replicas.count},
                      {"sync", to_text(replicas.sync)},
                      {"compression", to_text(plan.partition.gradient_reduction.compression)},
                      {"replica_step_s", plan.replicas->replica_s},
                      {"exchange_s", cost.exchange_s},
                      {"period_steps", cost.period_steps},
                      {"hidden", cost.hidden},
                      {"bytes", cost.bytes},
                      {"busiest_bytes", cost.busiest_bytes}};
  if (cost.in_each_step_first) {
    json["first_part_step_s"] = first_part_step_s(*plan.replicas);
  }
  return json;
}

std::string synchronisation_text(const ExplainedPlan& plan) {
  const SynchronisationCost& cost = plan.replicas->cost;
  std::string text =
      fmt::format("\nA replica alone: {}; {}: {} {}, {} by or to the busiest",
                  predicted_seconds(plan.replicas->replica_s),
                  to_text(plan.partition.replicas.sync),
                  predicted_seconds(cost.exchange_s),
                  cost.hidden              ? "a step while replicas compute"
                  : cost.period_steps == 1 ? std::string("a step")
                                           : fmt::format("every {} steps", cost.period_steps),
                  readable_bytes(cost.busiest_bytes));
  if (cost.in_each_step_first) {
    text += fmt::format("\nA step of the first part of the run: {}",
                        predicted_seconds(first_part_step_s(*plan.replicas)));
  }
  return text;
}

OrderedJson plan_json(const ExplainedPlan& plan) {
  OrderedJson json;
  if (!plan.name.empty()) {
    json["name"] = plan.name;
  }
  add_time(plan.time, json);
  json["groups"] = plan.groups();
  if (plan.replicas) {
    json["synchronisation"] = synchronisation_json(plan);
  }
  if (plan.traffic) {
    json["messages"] = plan.traffic->sent.messages;
    json["bytes"] = plan.traffic->sent.bytes;
    json["busiest_bytes"] = plan.traffic->busiest_bytes;
  }
  if (plan.most_bytes) {
    json["most_bytes"] = *plan.most_bytes;
    json["fits"] = plan.fits;
  }
  if (plan.energy) {
    json["power_w"] = plan.energy->power_w();
    json["energy_j"] = plan.energy->energy_j;
    json["edp_js"] = plan.energy->energy_delay_js();
    json["power_estimated"] = plan.energy->estimated;
  }
  json["limited_by"] = what_limits(plan.time);
  return json;
}

}  // namespace

std::string time_text(const ExplainedPlan& plan) {
  return fmt::format("Predicted step: about {}, limited by {}; {:.1f} % of computing redundant{}\n",
                     predicted_seconds(plan.time.step_s()),
                     what_limits(plan.time),
                     100 * plan.time.redundant_s / plan.time.computing_s(),
                     plan.replicas ? synchronisation_text(plan) : "");
}

std::string traffic_text(const ExplainedPlan& plan) {
  std::string text;
  if (plan.traffic) {
    text = fmt::format("Sent in a step{}: {} in {} messages, {} by or to the busiest device\n",
                       plan.replicas ? " within replicas" : "",
                       readable_bytes(plan.traffic->sent.bytes),
                       plan.traffic->sent.messages,
                       readable_bytes(plan.traffic->busiest_bytes));
  }
  return text + energy_line(plan.energy);
}

std::string prediction_json(const ExplainedPlan& plan) {
  return plan_json(plan).dump();
}

std::string explanation_table(const Explanation& explanation) {
  std::string text = alternatives_table(explanation.alternatives);
  if (!explanation.plans.empty()) {
    text += text.empty() ? "" : "\n";
    text +=
        "Predicted seconds per step on an average device; waiting counts towards what the "
        "message "
        "carries.\n"
        "Next best: second choice of the search. No joins: one group per layer. One group: all "
        "layers.\n"
        "Grid: tiles, then images. Images: data parallel throughout. \"!\": more than there is.\n";
    text += plans_table(explanation.plans);
  }
  if (!explanation.counts.empty()) {
    text += fmt::format(
        "{}Best partitions for other numbers of devices: the first of the profile, then more like "
        "its\n"
        "slowest\n",
        text.empty() ? "" : "\n");
    text += counts_table(explanation.counts);
  }
  if (!explanation.all_reduces.empty()) {
    text += "\n" + all_reduce_table(explanation.all_reduces);
  }
  if (!explanation.measured_all_reduces.empty()) {
    text += "\n" + measured_all_reduce_table(explanation.measured_all_reduces);
  }
  return text;
}

std::string scale_table(const std::vector<ScaledStep>& steps) {
  TextTable table({{"devices"},
                   {"step, s"},
                   {"speed-up"},
                   {"computing"},
                   {"redundant"},
                   {"maps"},
                   {"statistics"},
                   {"gradients"},
                   {"idle"},
                   {"planned in"}});
  for (const auto& [devices, time, planning_s] : steps) {
    const double step_s = time.step_s();
    const auto share = [step_s](double part_s) {
      return fmt::format("{:.1f} %", 100 * part_s / step_s);
    };
    table.add_row({std::to_string(devices),
                   seconds_number(step_s),
                   fmt::format("{:.1f}", steps.front().time.step_s() / step_s),
                   share(time.computing_s()),
                   share(time.redundant_s),
                   share(time.maps_s),
                   share(time.statistics_s),
                   share(time.gradients_s),
                   share(time.idle_s + time.loss_s),
                   fmt::format("{:.1f} s", planning_s)});
  }
  return table.text();
}

std::string scale_json(const ScaledStep& step) {
  OrderedJson json{{"devices", step.devices}};
  add_time(step.time, json);
  json["planning_s"] = step.planning_s;
  return json.dump();
}

std::string explanation_json(const Explanation& explanation) {
  OrderedJson json = {{"plans", OrderedJson::array()}, {"devices", OrderedJson::array()}};
  json.update(OrderedJson::parse(alternatives_json(explanation.alternatives)));
  for (const ExplainedPlan& plan : explanation.plans) {
    json["plans"].push_back(plan_json(plan));
  }
  for (const ExplainedCount& count : explanation.counts) {
    OrderedJson entry = {{"devices", count.devices}};
    entry["best"] = count.best ? plan_json(*count.best) : OrderedJson(nullptr);
    json["devices"].push_back(std::move(entry));
  }
  json["sums"] = OrderedJson::array();
  for (const auto& [algorithm, all_reduce_s] : explanation.all_reduces) {
    json["sums"].push_back({{"algorithm", name_of(algorithm)}, {"seconds", all_reduce_s}});
  }
  json["measured_sums"] = OrderedJson::array();
  for (const auto& [measured, predicted_s] : explanation.measured_all_reduces) {
    json["measured_sums"].push_back({{"devices", measured.devices},
                                     {"bytes", measured.bytes},
                                     {"seconds", measured.seconds},
                                     {"predicted_s", predicted_s}});
  }
  return json.dump();
}

}  // namespace tessera::partitioner
