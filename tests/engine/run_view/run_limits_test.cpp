// What is kept of a run that is longer than memory has room for.

#include "engine/run_view/run_limits.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/page/device_series.h"
#include "engine/run_view/run_figures.h"
#include "engine/run_view/run_lines.h"
#include "engine/run_view/run_reader.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::RunData;

constexpr engine::RunLimits kFew{
    .steps = 64, .evaluations = 32, .samples = 128, .events = 64, .timings = 64};

void add(RunData& data,
         bool (*add_line)(const nlohmann::ordered_json&, RunData&),
         const std::string& text) {
  REQUIRE(add_line(nlohmann::ordered_json::parse(text), data));
  keep_within(kFew, data);
}

}  // namespace

TEST_CASE("steps beyond the limit are joined, and their sums stay") {
  RunData data;
  for (int step = 1; step <= 5000; ++step) {
    add(data,
        engine::add_metrics_line,
        fmt::format(R"({{"step":{},"loss":{},"step_s":0.5,"energy_j":{}}})", step, step, step % 7));
    CHECK(data.steps.size() <= kFew.steps);
    CHECK(data.steps.back().step == step);
  }
  double energy_j = 0;
  for (int step = 1; step <= 5000; ++step) {
    energy_j += step % 7;
  }
  const engine::RunProgress progress = progress_of(data);
  CHECK(progress.energy_j == doctest::Approx(energy_j));
  CHECK(progress.elapsed_s == doctest::Approx(2500));  // of no time but that of the steps
  CHECK(progress.loss == 5000);
  for (const engine::StepRecord& record : data.steps) {  // evenly
    CHECK(record.lines <= 128);
  }
}

TEST_CASE("the best of very many tests and the last one stay") {
  RunData data;
  for (int step = 1; step <= 1000; ++step) {
    add(data,
        engine::add_metrics_line,
        fmt::format(R"({{"step":{},"test_loss":1,"accuracy":{}}})", step, step == 17 ? 0.9 : 0.5));
    CHECK(data.evaluations.size() <= kFew.evaluations);
  }
  CHECK(progress_of(data).best_accuracy == 0.9);
  CHECK(data.evaluations.back().step == 1000);
  CHECK(data.evaluations.size() > kFew.evaluations / 4);
}

TEST_CASE("samples of devices are joined: energy, peaks and counters stay, and no gap appears") {
  RunData data;
  for (int second = 0; second <= 3000; ++second) {
    for (int rank = 0; rank < 2; ++rank) {
      add(data,
          engine::add_device_line,
          fmt::format(R"({{"t_s":{},"rank":{},"step":1,"power_w":{},"rss_bytes":{},"tx_bytes":{},)"
                      R"("energy_j":{}}})",
                      second,
                      rank,
                      rank == 0 ? 5 : second % 2 * 10,
                      second == 100 ? 900 : 100,
                      second * 1000,
                      5 * second));
    }
    CHECK(data.samples <= kFew.samples);
  }
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    const engine::RunDevice& device = data.devices.at(rank);
    CHECK(device.joined > 8);
    CHECK(device.energy_j == 15000);
    CHECK(energy_of(device).back().y == 15000);
    CHECK(device.samples.back().t_s == 3000);
    CHECK(device.samples.back().tx_bytes == 3e6);
    double most = 0;
    for (const engine::DeviceSample& sample : device.samples) {
      most = std::max(most, sample.rss_bytes);
    }
    CHECK(most == 900);
    for (const engine::Point& point :
         rate_of(device, [](const engine::DeviceSample& sample) { return sample.tx_bytes; })) {
      CHECK(point.y == doctest::Approx(1000));
    }
  }
}

TEST_CASE("of very many events those that are not routine and the latest stay") {
  RunData data;
  add(data, engine::add_event_line, R"({"t_s":0,"step":0,"kind":"start","text":"started"})");
  for (int step = 1; step <= 1000; ++step) {
    add(data,
        engine::add_event_line,
        fmt::format(R"({{"t_s":{},"step":{},"kind":"checkpoint","text":"c"}})", step, step));
    CHECK(data.events.size() <= kFew.events);
  }
  CHECK(data.events.front().kind == "start");
  CHECK(data.events.back().step == 1000);
  CHECK(static_cast<Index>(data.events.size()) + data.dropped_events == 1001);
  for (int step = 1; step <= 1000; ++step) {
    add(data,
        engine::add_event_line,
        fmt::format(R"({{"t_s":{},"step":{},"kind":"warning","text":"w"}})", step, step));
    CHECK(data.events.size() <= kFew.events);
  }
  CHECK(data.events.back().kind == "warning");
  CHECK(static_cast<Index>(data.events.size()) + data.dropped_events == 2001);
}

TEST_CASE("timings are joined rank by rank, and their means stay") {
  RunData data;
  double sums[3] = {};
  for (int i = 0; i < 900; ++i) {
    const int rank = i % 3;
    sums[rank] += i * (1 + i % 2);
    add(data,
        engine::add_timing_line,
        fmt::format(R"({{"t_s":{},"step":{},"steps":{},"rank":{},"forward_s":{}}})",
                    i,
                    i,
                    1 + i % 2,
                    rank,
                    i));
    CHECK(data.timings.size() <= kFew.timings);
  }
  double joined[3] = {};
  Index steps = 0;
  for (const engine::StepTiming& timing : data.timings) {
    joined[timing.rank] += static_cast<double>(timing.steps) * timing.forward_s;
    steps += timing.steps;
  }
  CHECK(steps == 1350);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(joined[rank] == doctest::Approx(sums[rank]));
  }
  CHECK(devices_now(data).empty());  // nothing says how many ranks there are
  CHECK(data.timings.back().forward_s == 899);
}

TEST_CASE("texts of a line that somebody has changed are cut, between letters") {
  const tests::TemporaryFolder folder;
  std::string text(4095, 'x');
  text += "\xc3\xa4 and more";
  tests::put_bytes(folder / "events.jsonl",
                   R"({"t_s":1,"step":1,"kind":"warning","text":")" + text + "\"}\n");
  const RunData data = engine::read_run(folder.path());
  REQUIRE(data.events.size() == 1);
  CHECK(data.events[0].text == std::string(4095, 'x'));
}
