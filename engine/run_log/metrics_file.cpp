#include "engine/run_log/metrics_file.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/files/json_text.h"

namespace tessera::engine {

namespace {

constexpr const char* kTestLoss = "test_loss";  // which evaluations alone have

// Milliseconds and millijoules are enough.
double rounded(double value) {
  return std::round(1e3 * value) / 1e3;
}

nlohmann::ordered_json json_of(const std::optional<double>& energy_j) {
  return energy_j ? nlohmann::ordered_json(rounded(*energy_j)) : nlohmann::ordered_json();
}

nlohmann::ordered_json json_of(const std::vector<std::optional<double>>& energies_j) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& energy_j : energies_j) {
    json.push_back(json_of(energy_j));
  }
  return json;
}

std::optional<double> number_in(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? std::optional(found->get<double>())
                                                   : std::nullopt;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, Index resumed_step, bool owes_test)
    : path_(path),
      lines_(
          path,
          resumed_step,
          [this](const nlohmann::json& line) { take_in(line); },
          [this, resumed_step, owes_test](const nlohmann::json& line, Index step) {
            note_time(line);
            return step < resumed_step ||
                   (step == resumed_step && !(owes_test && line.contains(kTestLoss)));
          }) {
  expect_step(resumed_step + 1);
}

void MetricsFile::note_time(const nlohmann::json& line) {
  if (line.contains("loss")) {
    stepped_until_s_ = std::max(stepped_until_s_, number_in(line, "t_s").value_or(0));
  }
}

void MetricsFile::take_in(const nlohmann::json& line) {
  note_time(line);
  kept_until_s_ = std::max(kept_until_s_, number_in(line, "t_s").value_or(0));
  if (line.contains("loss")) {
    const Index step = line["step"].get<Index>();
    expect_step(step);
    last_step_ = std::max(last_step_, step);
    if (const auto energy_j = number_in(line, "energy_j")) {
      stepped_energy_.total_j = stepped_energy_.total_j.value_or(0) + *energy_j;
    }
  } else if (const auto energy_j = number_in(line, "run_energy_j")) {
    tested_energy_ = {energy_j, {}};
    for (const auto& of_rank : line.value("run_energy_by_rank_j", nlohmann::json::array())) {
      tested_energy_.of_rank_j.push_back(of_rank.is_number() ? std::optional(of_rank.get<double>())
                                                             : std::nullopt);
    }
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
  nlohmann::ordered_json line{{"step", step},
                              {"loss", result.loss},
                              {"learning_rate", result.learning_rate},
                              {"step_s", result.times.step_s},
                              {"images_per_s", static_cast<double>(images) / result.times.step_s},
                              {"load_s", result.times.load_s},
                              {"forward_s", result.times.forward_s},
                              {"backward_s", result.times.backward_s},
                              {"update_s", result.times.update_s},
                              {"exchange_s", result.times.exchanges.total_s()},
                              {"t_s", rounded(course.t_s)},
                              {"energy_j", json_of(course.energy_j)}};
  if (result.size) {
    line["size"] = to_text(*result.size);
  }
  lines_.add_line(line.dump());
}

void MetricsFile::add_evaluation(Index step,
                                 double epoch,
                                 const EvaluationResult& result,
                                 double t_s,
                                 const EvaluationEnergy& energy) {
  lines_.add_line(nlohmann::ordered_json{{"step", step},
                                         {"epoch", epoch},
                                         {result.score().name, result.score().value},
                                         {kTestLoss, result.loss},
                                         {"test_pictures", result.pictures},
                                         {"t_s", rounded(t_s)},
                                         {"energy_j", json_of(energy.since_last.total_j)},
                                         {"run_energy_j", json_of(energy.run.total_j)},
                                         {"energy_by_rank_j", json_of(energy.since_last.of_rank_j)},
                                         {"run_energy_by_rank_j", json_of(energy.run.of_rank_j)}}
                      .dump());
}

namespace {

// Calls visit(step, line) for each evaluation in the file.
void for_each_evaluation(const std::filesystem::path& path,
                         const std::function<void(Index step, const nlohmann::json& line)>& visit) {
  for_each_json_line(path, [&](const std::string& line) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains(kTestLoss) && json.contains("step") &&
        json["step"].is_number_integer()) {
      visit(json["step"].get<Index>(), json);
    }
  });
}

// NaN, which JSON has no number for, where it is none.
double number_or_nan(const nlohmann::json& line, const std::string& key) {
  return number_in(line, key.c_str()).value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

std::optional<double> first_loss(const std::filesystem::path& path) {
  std::optional<double> first;
  for_each_json_line(path, [&](const std::string& line) {
    const auto json = first ? nlohmann::json() : nlohmann::json::parse(line, nullptr, false);
    first = json.is_object() ? number_in(json, "loss") : first;
  });
  return first;
}

bool has_evaluation(const std::filesystem::path& path, Index step) {
  bool found = false;
  for_each_evaluation(path, [&](Index its_step, const nlohmann::json& /*line*/) {
    found = found || its_step == step;
  });
  return found;
}

Index count_evaluations(const std::filesystem::path& path, Index step) {
  Index count = 0;
  for_each_evaluation(path, [&](Index its_step, const nlohmann::json& /*line*/) {
    count += its_step > step ? 1 : 0;
  });
  return count;
}

std::optional<BestSoFar> best_evaluation(const std::filesystem::path& path,
                                         const MetricValue& score,
                                         Index step) {
  std::optional<BestSoFar> best;
  for_each_evaluation(path, [&](Index its_step, const nlohmann::json& line) {
    BestSoFar now{its_step, {score, number_or_nan(line, kTestLoss)}};
    now.tested.score.value = number_or_nan(line, score.name);
    if (its_step <= step && (!best || now.tested.better_than(best->tested))) {
      best = now;
    }
  });
  return best;
}

}  // namespace tessera::engine
