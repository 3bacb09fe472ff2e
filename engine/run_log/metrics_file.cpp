#include "engine/run_log/metrics_file.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

namespace tessera::engine {

MetricsFile::MetricsFile(const std::filesystem::path& path, Index resumed_step, bool owes_test)
    : path_(path),
      lines_(
          path,
          resumed_step,
          [this](const nlohmann::ordered_json& line) {
            const MetricsRecord record = metrics_record(line).value_or(MetricsRecord());
            if (const auto* const step = std::get_if<StepRecord>(&record)) {
              take_in(*step);
            } else if (const auto* const test = std::get_if<EvaluationRecord>(&record)) {
              take_in(*test);
            }
          },
          [this, resumed_step, owes_test](const nlohmann::ordered_json& line, Index step) {
            const MetricsRecord record = metrics_record(line).value_or(MetricsRecord());
            if (const auto* const stepped = std::get_if<StepRecord>(&record)) {
              stepped_until_s_ = std::fmax(stepped_until_s_, stepped->t_s);
            }
            const bool owed = owes_test && std::holds_alternative<EvaluationRecord>(record);
            return step < resumed_step || (step == resumed_step && !owed);
          }) {
  expect_step(resumed_step + 1);
}

void MetricsFile::take_in(const StepRecord& record) {
  kept_until_s_ = std::fmax(kept_until_s_, record.t_s);
  stepped_until_s_ = std::fmax(stepped_until_s_, record.t_s);
  expect_step(record.step);
  last_step_ = std::max(last_step_, record.step);
  if (known(record.energy_j)) {
    stepped_energy_.total_j = stepped_energy_.total_j.value_or(0) + record.energy_j;
  }
}

void MetricsFile::take_in(const EvaluationRecord& record) {
  kept_until_s_ = std::fmax(kept_until_s_, record.t_s);
  if (known(record.run_energy_j)) {
    tested_energy_ = {record.run_energy_j, record.run_energy_by_rank_j};
  }
}

// Counts the steps before this one that have no line.
void MetricsFile::expect_step(Index step) {
  if (last_step_ > 0 && step > last_step_ + 1) {
    first_missing_ = missing_ == 0 ? last_step_ + 1 : first_missing_;
    last_missing_ = step - 1;
    missing_ += step - 1 - last_step_;
  }
}

std::optional<std::string> MetricsFile::damage() const {
  std::optional<std::string> text = lines_.damage();
  if (missing_ > 0) {
    const std::string steps =
        missing_ == 1
            ? fmt::format("step {} has no line", first_missing_)
            : fmt::format(
                  "{} steps from {} to {} have no line", missing_, first_missing_, last_missing_);
    text =
        text ? fmt::format("{}; {}", *text, steps) : fmt::format("{}: {}", path_.string(), steps);
  }
  return text;
}

void MetricsFile::add_step(Index step,
                           const StepResult& result,
                           Index images,
                           const Course& course) {
  lines_.add_line(metrics_line({.step = step,
                                .t_s = course.t_s,
                                .loss = result.loss,
                                .learning_rate = result.learning_rate,
                                .step_s = result.times.step_s,
                                .images_per_s = static_cast<double>(images) / result.times.step_s,
                                .load_s = result.times.load_s,
                                .forward_s = result.times.forward_s,
                                .backward_s = result.times.backward_s,
                                .update_s = result.times.update_s,
                                .exchange_s = result.times.exchanges.total_s(),
                                .energy_j = course.energy_j.value_or(kUnknown),
                                .size = result.size ? to_text(*result.size) : ""}));
}

void MetricsFile::add_evaluation(Index step,
                                 double epoch,
                                 const EvaluationResult& result,
                                 double t_s,
                                 const EvaluationEnergy& energy) {
  lines_.add_line(
      metrics_line(EvaluationRecord{.step = step,
                                    .epoch = epoch,
                                    .accuracy = result.score().value,
                                    .test_loss = result.loss,
                                    .test_pictures = static_cast<double>(result.pictures),
                                    .t_s = t_s,
                                    .energy_j = energy.since_last.total_j.value_or(kUnknown),
                                    .run_energy_j = energy.run.total_j.value_or(kUnknown),
                                    .energy_by_rank_j = energy.since_last.of_rank_j,
                                    .run_energy_by_rank_j = energy.run.of_rank_j,
                                    .score = result.score().name}));
}

std::optional<double> first_loss(const std::filesystem::path& path) {
  std::optional<double> first;
  for_each_metrics_record(path,
                          [&](const StepRecord& step) {
                            first = first || !known(step.loss) ? first : std::optional(step.loss);
                          },
                          {});
  return first;
}

bool has_evaluation(const std::filesystem::path& path, Index step) {
  bool found = false;
  for_each_metrics_record(
      path, {}, [&](const EvaluationRecord& test) { found = found || test.step == step; });
  return found;
}

Index count_evaluations(const std::filesystem::path& path, Index step) {
  Index count = 0;
  for_each_metrics_record(
      path, {}, [&](const EvaluationRecord& test) { count += test.step > step ? 1 : 0; });
  return count;
}

std::optional<BestSoFar> best_evaluation(const std::filesystem::path& path,
                                         const MetricValue& score,
                                         Index step) {
  std::optional<BestSoFar> best;
  const auto look = [&](const EvaluationRecord& test) {
    BestSoFar now{test.step, {score, test.test_loss}};
    now.tested.score.value = test.accuracy;
    if (test.step <= step && (!best || now.tested.better_than(best->tested))) {
      best = now;
    }
  };
  for_each_metrics_record(path, {}, look, score.name);
  return best;
}

}  // namespace tessera::engine
