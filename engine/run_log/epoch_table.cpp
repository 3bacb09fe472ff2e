#include "engine/run_log/epoch_table.h"

#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/json_text.h"
#include "engine/run_files/metrics.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kMostRow = 1000;  // bytes of one

std::string titles(const std::string& score) {
  return "epoch,step,learning_rate,training_loss,test_loss,test_" + score +
         ",seconds,images_per_s,energy_j\n";
}

// "3.5", or nothing where it is not known.
std::string cell(double value) {
  return known(value) ? fmt::format("{:.9g}", value) : "";
}

// What the lines of an epoch say together.
struct EpochSums {
  double steps = 0;
  double loss = 0;
  double seconds = 0;
  double images = 0;
  double learning_rate = kUnknown;  // of the last step
  double energy_j = kUnknown;       // until its test, where there is one
  double test_loss = kUnknown;
  double test_score = kUnknown;

  void add(const StepRecord& step) {
    const auto or_none = [](double number) { return known(number) ? number : 0; };
    if (!known(step.step_s)) {
      return;
    }
    steps += 1;
    loss += or_none(step.loss);
    seconds += step.step_s;
    images += step.step_s * or_none(step.images_per_s);
    learning_rate = step.learning_rate;
    energy_j = known(step.energy_j) ? or_none(energy_j) + step.energy_j : energy_j;
  }

  void add(const EvaluationRecord& test) {
    test_loss = test.test_loss;
    test_score = test.accuracy;
    energy_j = test.energy_j;
  }

  [[nodiscard]] std::string row(Index step, double epoch) const {
    const auto mean = [](double sum, double count) { return count > 0 ? sum / count : kUnknown; };
    return fmt::format("{},{},{},{},{},{},{},{},{}\n",
                       epoch_number(step, epoch),
                       step,
                       cell(learning_rate),
                       cell(mean(loss, steps)),
                       cell(test_loss),
                       cell(test_score),
                       cell(seconds),
                       cell(mean(images, seconds)),
                       cell(energy_j));
  }
};

// The step of a row; nothing where that is none.
std::optional<Index> step_of(const std::string& row) {
  const std::size_t comma = row.find(',');
  if (comma == std::string::npos) {
    return std::nullopt;
  }
  Index step = 0;
  const char* const end = row.data() + row.size();
  const auto [stop, error] = std::from_chars(row.data() + comma + 1, end, step);
  return error == std::errc{} && stop != end && *stop == ',' ? std::optional(step) : std::nullopt;
}

}  // namespace

bool has_epoch_row(const std::filesystem::path& path, Index step) {
  bool found = false;
  for_each_line(
      path, kMostRow, [&](const std::string& row) { found = found || step_of(row) == step; });
  return found;
}

EpochTable::EpochTable(std::filesystem::path path,
                       std::filesystem::path metrics,
                       std::string score,
                       Index resumed_step)
    : path_(std::move(path)),
      metrics_(std::move(metrics)),
      score_(std::move(score)),
      rows_(titles(score_)) {
  if (resumed_step > 0) {
    for_each_line(path_, kMostRow, [&](const std::string& row) {
      const auto step = step_of(row);
      if (step && *step > last_step_ && *step <= resumed_step) {
        rows_ += row + '\n';
        last_step_ = *step;
      }
    });
  }
  write_atomically(path_, rows_);
}

void EpochTable::add_epoch(Index step, double epoch) {
  std::ifstream file(metrics_);
  file.seekg(read_bytes_);
  EpochSums sums;
  std::string text;
  while (std::getline(file, text) && !file.eof()) {  // without what ends before its line does
    read_bytes_ += std::ssize(text) + 1;
    const auto record = metrics_record(nlohmann::ordered_json::parse(text, nullptr, false), score_);
    if (const auto* const taken = record ? std::get_if<StepRecord>(&*record) : nullptr) {
      taken->step > last_step_ ? sums.add(*taken) : void();
    } else if (const auto* const tested =
                   record ? std::get_if<EvaluationRecord>(&*record) : nullptr) {
      tested->step > last_step_ ? sums.add(*tested) : void();
    }
  }
  last_step_ = step;
  rows_ += sums.row(step, epoch);
  write_atomically(path_, rows_);
}

void EpochTable::copy_to(const std::filesystem::path& path) const {
  write_atomically(path, rows_);
}

}  // namespace tessera::engine
