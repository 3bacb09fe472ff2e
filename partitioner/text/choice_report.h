// A choice of devices, as a table and as choice.json: what is predicted, what was measured, and
// what a whole run would take on each set of devices.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/search/device_sets.h"
#include "partitioner/search/device_trials.h"

namespace tessera::partitioner {

struct ChoiceReport {
  Objective objective = Objective::Time;
  std::vector<std::string> devices;   // names, of the whole cluster
  std::vector<DeviceSet> sets;        // by number
  std::vector<SetOutlook> ranking;    // of these, as DeviceTrials has it
  std::optional<std::size_t> chosen;  // number of a set
  double steps = 0;                   // of the run, see TrialOptions
  bool tried = false;                 // else it is all predicted
  bool estimated = false;             // whether some power is estimated by the kind of board
  std::optional<double> deadline_s = {};
  std::optional<double> power_limit_w = {};
};

// At most 120 columns, in the order of the ranking.
[[nodiscard]] std::string choice_table(const ChoiceReport& report);

// "pi1, pi3 for least energy: 1.2e+03 J +-3 %"
[[nodiscard]] std::string choice_line(const ChoiceReport& report);

// One JSON object: objective; chosen, the index of a candidate or null; candidates, in the order of
// the ranking, each with devices (names), partition (its text, or null where nothing fits),
// predicted_step_s, measured_step_s, and of the whole run time_s, power_w, energy_j, edp_js; null
// where that is unknown; tried_steps; pruned, null or a sentence why it was not tried or may not be
// chosen. Beside that uncertainty, of each candidate how far time_s, power_w, energy_j and edp_js
// may be off; steps; tried; power_estimated; and the limits deadline_s and power_limit_w, or null.
[[nodiscard]] std::string choice_json(const ChoiceReport& report);

// What an earlier choice came to, the devices by name and their partition's text, and what it was
// for. Nothing where `json` is no such choice, or nothing was tried for it.
struct EarlierChoice {
  std::vector<std::string> devices;
  std::string partition;
  std::string objective;
  std::optional<double> deadline_s;
  std::optional<double> power_limit_w;
};
[[nodiscard]] std::optional<EarlierChoice> earlier_choice(const std::string& json);

}  // namespace tessera::partitioner
