// metrics.jsonl: a line for each step and each evaluation.

#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/run_files/unknown.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// Seconds are those of rank 0; those of exchanges are part of forward, backward and update. Where
// it stands for several lines, it is that of the last one, with the mean of their energy.
struct StepRecord {
  Index step = 0;
  Index lines = 1;        // that it stands for, see run_view/run_limits.h; not in the file
  double t_s = kUnknown;  // at its end
  double loss = kUnknown;
  double learning_rate = kUnknown;
  double step_s = kUnknown;
  double images_per_s = kUnknown;
  double load_s = kUnknown;
  double forward_s = kUnknown;
  double backward_s = kUnknown;
  double update_s = kUnknown;
  double exchange_s = kUnknown;
  double energy_j = kUnknown;  // of all devices, since the last line about a step
  std::string size = {};       // of its pictures, where that changes: "96x96"
};

// Where it stands for several lines, it is the best of them.
struct EvaluationRecord {
  Index step = 0;
  Index lines = 1;  // likewise
  double epoch = kUnknown;
  double accuracy = kUnknown;  // 0 to 1; of a detector mean average precision at an overlap of 0.5
  double test_loss = kUnknown;
  double test_pictures = kUnknown;
  double t_s = kUnknown;
  double energy_j = kUnknown;      // since the last evaluation or the start, all devices
  double run_energy_j = kUnknown;  // of the run until then, all devices
  std::vector<std::optional<double>> energy_by_rank_j = {};
  std::vector<std::optional<double>> run_energy_by_rank_j = {};
  std::string score = "accuracy";  // what the file calls it, for a detector "map50"
};

inline constexpr const char* kDetectorScore = "map50";

using MetricsRecord = std::variant<std::monostate, StepRecord, EvaluationRecord>;

// Without its end.
[[nodiscard]] std::string metrics_line(const StepRecord& record);
[[nodiscard]] std::string metrics_line(const EvaluationRecord& record);

// Nothing where it is no line of such a file; of a kind that a later version may write it is
// neither. `score` is what evaluations call their result; empty: the one of the two that is there.
[[nodiscard]] std::optional<MetricsRecord> metrics_record(const nlohmann::ordered_json& line,
                                                          const std::string& score = {});

// Calls for each such line of a file what it is of.
void for_each_metrics_record(const std::filesystem::path& path,
                             const std::function<void(const StepRecord&)>& step,
                             const std::function<void(const EvaluationRecord&)>& evaluation,
                             const std::string& score = {});

// The last step that such a file has; 0 where its last line is damaged and none before it has one,
// nothing where it has no line.
[[nodiscard]] std::optional<Index> last_recorded_step(const std::filesystem::path& path);

}  // namespace tessera::engine
