#include "engine/run_log/epoch_table.h"

#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/json_text.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostRow = 1000;  // bytes of one

std::string titles(const std::string& score) {
  return "epoch,step,learning_rate,training_loss,test_loss,test_" + score +
         ",seconds,images_per_s,energy_j\n";
}

// "3.5", or nothing where it is not known.
std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.9g}", *value) : "";
}

std::optional<double> number(const Json& line, const std::string& key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? std::optional(found->get<double>())
                                                   : std::nullopt;
}

// What the lines of an epoch say together.
struct EpochSums {
  std::string score;  // the key of what tests say
  double steps = 0;
  double loss = 0;
  double seconds = 0;
  double images = 0;
  std::optional<double> learning_rate = {};  // of the last step
  std::optional<double> energy_j = {};       // until its test, where there is one
  std::optional<double> test_loss = {};
  std::optional<double> test_score = {};

  void add(const Json& line) {
    if (const auto tested_loss = number(line, "test_loss")) {
      test_loss = tested_loss;
      test_score = number(line, score);
      energy_j = number(line, "energy_j");
    }
    const auto step_s = number(line, "step_s");
    if (!step_s) {
      return;
    }
    steps += 1;
    loss += number(line, "loss").value_or(0);
    seconds += *step_s;
    images += *step_s * number(line, "images_per_s").value_or(0);
    learning_rate = number(line, "learning_rate");
    if (const auto energy = number(line, "energy_j")) {
      energy_j = energy_j.value_or(0) + *energy;
    }
  }

  [[nodiscard]] std::string row(Index step, double epoch) const {
    const auto mean = [](double sum, double count) {
      return count > 0 ? std::optional(sum / count) : std::nullopt;
    };
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
  EpochSums sums{score_};
  std::string text;
  while (std::getline(file, text) && !file.eof()) {  // without what ends before its line does
    read_bytes_ += std::ssize(text) + 1;
    const auto line = Json::parse(text, nullptr, false);
    if (line.is_object() && number(line, "step").value_or(0) > static_cast<double>(last_step_)) {
      sums.add(line);
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
