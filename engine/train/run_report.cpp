#include "engine/train/run_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/system/clock.h"
#include "engine/system/system_memory.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

using partitioner::MemoryUse;

namespace {

nlohmann::ordered_json to_json(const MemoryUse& use) {
  nlohmann::ordered_json json;
  for (const partitioner::MemoryKind& kind : partitioner::kMemoryKinds) {
    json[kind.name] = use.*kind.bytes;
  }
  json["total"] = use.total();
  return json;
}

}  // namespace

MemoryUse measured_memory(const ExecutionMemory& execution, Index optimizer_bytes) {
  MemoryUse use;
  use.weights = execution.weights;
  use.gradients = execution.gradients;
  use.optimizer = optimizer_bytes;
  use.activations = execution.activations;
  use.workspace = execution.workspace;
  use.messages = execution.messages;
  return use;
}

std::string memory_json(const std::vector<MemoryUse>& planned,
                        const MemoryUse& measured,
                        const Communicator& communicator) {
  struct Report {
    MemoryUse use;
    Index peak_resident = 0;
  };
  const Report mine{measured, peak_resident_bytes()};
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  const auto all = communicator.gather_all(bytes_of(&mine, 1));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Report theirs{};
    std::memcpy(&theirs, all[rank].data(), sizeof(theirs));
    nlohmann::ordered_json entry;
    entry["rank"] = rank;
    entry["planned"] = to_json(planned[rank]);
    entry["measured"] = to_json(theirs.use);
    entry["measured"]["peak_resident"] = theirs.peak_resident;
    ranks.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{{"unit", "bytes"}, {"ranks", ranks}}.dump(1) + "\n";
}

std::string memory_table(const std::string& json) {
  const auto report = nlohmann::ordered_json::parse(json);
  std::vector<Column> columns = {{"rank"}, {"", Align::Left}};
  for (const partitioner::MemoryKind& kind : partitioner::kMemoryKinds) {
    columns.push_back({kind.name});
  }
  columns.push_back({"total"});
  columns.push_back({"resident"});
  TextTable table(columns);
  for (const auto& rank : report["ranks"]) {
    for (const char* which : {"planned", "measured"}) {
      const auto& use = rank[which];
      const bool measured = use.contains("peak_resident");
      std::vector<std::string> cells = {measured ? "" : std::to_string(rank["rank"].get<int>()),
                                        which};
      for (const partitioner::MemoryKind& kind : partitioner::kMemoryKinds) {
        cells.push_back(mebibytes(use[kind.name].get<Index>()));
      }
      cells.push_back(mebibytes(use["total"].get<Index>()));
      cells.push_back(measured ? mebibytes(use["peak_resident"].get<Index>()) : "");
      table.add_row(std::move(cells));
    }
  }
  return "memory of each rank, MiB; resident: the peak, as the kernel counts it\n" + table.text();
}

void say(const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  (void)std::fflush(stdout);
}

Progress::Progress(ProgressStyle style, Index first_step, Index last_step, int columns)
    : style_(style),
      columns_(static_cast<std::size_t>(std::max(columns, 2)) - 1),
      first_step_(first_step),
      last_step_(last_step),
      started_s_(now_s()) {}

// What is said next begins a line of its own.
Progress::~Progress() {
  if (bar_is_open_) {
    say("\n");
  }
}

std::string Progress::time_left(Index step) const {
  const double per_step = (now_s() - started_s_) / static_cast<double>(step - first_step_);
  const auto left =
      static_cast<Index>(std::llround(per_step * static_cast<double>(last_step_ - step)));
  return left >= 3600 ? fmt::format("{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60)
                      : fmt::format("{}:{:02}", left / 60, left % 60);
}

void Progress::step(Index step, const StepResult& result, Index images) {
  if (style_ == ProgressStyle::None) {
    return;
  }
  // Only where it is much: else pictures are there before they are needed.
  constexpr double kMuch = 0.2;
  const double waiting = result.times.load_s / std::max(result.times.step_s, 1e-9);
  const std::string line = fmt::format(
      "step {:>{}}/{}  loss {:.4f}  lr {:.4g}  {:.0f} images/s  {} left{}",
      step,
      fmt::formatted_size("{}", last_step_),
      last_step_,
      result.loss,
      result.learning_rate,
      static_cast<double>(images) / result.times.step_s,
      time_left(step),
      waiting < kMuch ? "" : fmt::format("  waiting for pictures {:.0f} %", 100 * waiting));
  if (style_ == ProgressStyle::Line) {
    say(line + "\n");
  } else if (now_s() - shown_s_ > 0.2 || step == last_step_) {
    constexpr Index kWidth = 12;
    const Index done = kWidth * step / last_step_;
    shown_s_ = now_s();
    bar_is_open_ = step < last_step_;
    const std::string bar = fmt::format("[{:=<{}}{: <{}}] ", "", done, "", kWidth - done);
    const bool fits = bar.size() + line.size() <= columns_;
    say(fmt::format(
        "\r{:{}.{}}{}", (fits ? bar : "") + line, columns_, columns_, bar_is_open_ ? "" : "\n"));
  }
}

void Progress::evaluation(Index step, double epoch, const EvaluationResult& result) {
  if (style_ == ProgressStyle::None) {
    return;
  }
  say(fmt::format("{}after {:.4g} epoch{} ({} steps): test {}, test loss {:.4f}, {} pictures\n",
                  bar_is_open_ ? fmt::format("\r{:{}}\r", "", columns_) : "",
                  epoch,
                  epoch == 1 ? "" : "s",
                  step,
                  described(result.score()),
                  result.loss,
                  result.pictures));
  bar_is_open_ = false;
}

}  // namespace tessera::engine
