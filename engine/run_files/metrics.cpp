#include "engine/run_files/metrics.h"

#include "engine/files/json_text.h"
#include "engine/run_files/record_fields.h"

namespace tessera::engine {

static auto fields_of(const StepRecord& /*record*/) {
  return std::tuple{Field("step", &StepRecord::step),
                    Field("loss", &StepRecord::loss),
                    Field("learning_rate", &StepRecord::learning_rate),
                    Field("step_s", &StepRecord::step_s),
                    Field("images_per_s", &StepRecord::images_per_s),
                    Field("load_s", &StepRecord::load_s),
                    Field("forward_s", &StepRecord::forward_s),
                    Field("backward_s", &StepRecord::backward_s),
                    Field("update_s", &StepRecord::update_s),
                    Field("exchange_s", &StepRecord::exchange_s),
                    Field("t_s", &StepRecord::t_s, 3),
                    Field("energy_j", &StepRecord::energy_j, 3),
                    Field("size", &StepRecord::size, Absent::LeftOut)};
}

static auto fields_of(const EvaluationRecord& record) {
  return std::tuple{Field("step", &EvaluationRecord::step),
                    Field("epoch", &EvaluationRecord::epoch),
                    Field(record.score.c_str(), &EvaluationRecord::accuracy),
                    Field("test_loss", &EvaluationRecord::test_loss),
                    Field("test_pictures", &EvaluationRecord::test_pictures, 0),
                    Field("t_s", &EvaluationRecord::t_s, 3),
                    Field("energy_j", &EvaluationRecord::energy_j, 3),
                    Field("run_energy_j", &EvaluationRecord::run_energy_j, 3),
                    Field("energy_by_rank_j", &EvaluationRecord::energy_by_rank_j, 3),
                    Field("run_energy_by_rank_j", &EvaluationRecord::run_energy_by_rank_j, 3)};
}

std::string metrics_line(const StepRecord& record) {
  return record_text(record);
}

std::string metrics_line(const EvaluationRecord& record) {
  return record_text(record);
}

std::optional<MetricsRecord> metrics_record(const RecordJson& line, const std::string& score) {
  if (!has_count(line, "step")) {
    return std::nullopt;
  }
  EvaluationRecord evaluation;
  const bool detector = line.contains(kDetectorScore);
  evaluation.score = !score.empty() ? score : detector ? kDetectorScore : evaluation.score;
  if (line.contains("test_loss") || line.contains(evaluation.score)) {
    take(line, evaluation);
    return evaluation;
  }
  return line.contains("loss") ? MetricsRecord(record_of<StepRecord>(line)) : MetricsRecord();
}

void for_each_metrics_record(const std::filesystem::path& path,
                             const std::function<void(const StepRecord&)>& step,
                             const std::function<void(const EvaluationRecord&)>& evaluation,
                             const std::string& score) {
  for_each_json_line(path, [&](const std::string& text) {
    const auto record = metrics_record(RecordJson::parse(text, nullptr, false), score);
    if (const auto* const of_step = record ? std::get_if<StepRecord>(&*record) : nullptr) {
      step ? step(*of_step) : void();
    } else if (const auto* const of_test =
                   record ? std::get_if<EvaluationRecord>(&*record) : nullptr) {
      evaluation ? evaluation(*of_test) : void();
    }
  });
}

std::optional<Index> last_recorded_step(const std::filesystem::path& path) {
  std::optional<Index> last;
  for_each_json_line(path, [&](const std::string& text) {
    const RecordJson line = RecordJson::parse(text, nullptr, false);
    last = has_count(line, "step") ? record_of<StepRecord>(line).step : last.value_or(0);
  });
  return last;
}

}  // namespace tessera::engine
