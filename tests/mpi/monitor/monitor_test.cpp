#include "engine/monitor/monitor.h"

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/comm/agreement.h"
#include "engine/comm/patience.h"
#include "engine/system/clock.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::DeviceLog;
using engine::Monitor;
using engine::RunClock;
using Lines = std::vector<nlohmann::json>;

constexpr double kPeriod_s = 0.02;

// What a monitor of all ranks leaves behind; the lines are rank 0's. `use` is called while it runs.
template <class Use>
Lines monitored(engine::MonitorOptions options, const Communicator& world, Use use) {
  const tests::TemporaryFolder folder;
  const auto file = folder / "devices.jsonl";
  std::optional<DeviceLog> log;
  if (world.rank() == 0) {
    log.emplace(file, 0);
  }
  options.period_s = kPeriod_s;
  {
    const RunClock clock(world);
    Monitor monitor(std::move(options), world, clock, log ? &*log : nullptr);
    use(monitor, clock);
  }
  world.barrier();
  Lines lines;
  std::istringstream text(world.rank() == 0 ? tests::bytes_of(file) : "");
  for (std::string line; std::getline(text, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

// All ranks wait for each other meanwhile.
void pass_periods(const Communicator& world, int count) {
  const double end_s = engine::now_s() + count * kPeriod_s;
  while (world.share(engine::now_s() < end_s)) {
    std::this_thread::yield();
  }
}

TEST_CASE("every rank has lines until the last step, and none of its counters goes back") {
  engine::Pulse pulse;
  const Communicator world = Communicator::world(&pulse);
  const Lines lines = monitored({}, world, [&](Monitor& monitor, const RunClock& /*clock*/) {
    for (int step = 1; step <= 10; ++step) {
      pass_periods(world, 1);
      monitor.set_step(step);
    }
    monitor.finish();
  });
  std::map<int, nlohmann::json> last;
  for (const auto& line : lines) {
    const int rank = line["rank"];
    if (last.count(rank) > 0) {
      for (const char* counter : {"t_s",
                                  "step",
                                  "cpu_user_s",
                                  "cpu_system_s",
                                  "wait_s",
                                  "rx_bytes",
                                  "tx_bytes",
                                  "rx_packets",
                                  "tx_packets"}) {
        CHECK(line[counter].get<double>() >= last[rank][counter].get<double>());
      }
    }
    CHECK(line["rss_bytes"].get<double>() > 1e6);
    last[rank] = line;
  }
  if (world.rank() == 0) {
    CHECK(last.size() == static_cast<std::size_t>(world.size()));
  }
  for (const auto& [rank, line] : last) {
    CHECK(line["step"] == 10);  // the last sample of each arrives
    CHECK(line["t_s"].get<double>() >= 10 * kPeriod_s);
  }
  CHECK((world.size() > 1) == (pulse.waited_s() > 0));
}

TEST_CASE("time spent waiting is not more than has passed") {
  engine::Pulse pulse;
  const double start_s = engine::now_s();
  const Communicator world = Communicator::world(&pulse);
  const Lines lines = monitored({}, world, [&](Monitor& monitor, const RunClock& clock) {
    pass_periods(world, 5);
    if (world.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // others wait for it
    }
    world.barrier();
    CHECK(clock.t_s() >= 0.05);
    monitor.finish();
  });
  const double passed_s = engine::now_s() - start_s;
  for (const auto& line : lines) {
    CHECK(line["wait_s"].get<double>() <= passed_s + 0.001);
    if (line["rank"] != 0 && line["t_s"].get<double>() > 5 * kPeriod_s + 0.05) {
      CHECK(line["wait_s"].get<double>() >= 0.045);
    }
  }
}

TEST_CASE("energy of a known power is that power times the time, whichever rank has the meter") {
  const Communicator world = Communicator::world();
  const tests::TemporaryFolder meters;
  tests::put_bytes(meters / "curve", "period 0.01\n0 5\n");
  engine::MonitorOptions options;
  options.meters = {engine::parse_meter("file:" + (meters / "curve").string())};
  double total_j = 0;
  double passed_s = 0;
  const Lines lines = monitored(options, world, [&](Monitor& monitor, const RunClock& clock) {
    pass_periods(world, 10);
    CHECK((world.rank() != 0 || monitor.energy().total_j.has_value()));
    while (world.rank() == 0 && monitor.energy().total_j.value_or(0) < 5 * 10 * kPeriod_s * 0.8) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until it has watched so long
    }
    world.barrier();
    monitor.finish();
    passed_s = clock.t_s();
    total_j = monitor.energy().total_j.value_or(0);
    CHECK(monitor.energy().total_j.value_or(0) == total_j);  // nothing is added later
  });
  if (world.rank() == 0) {
    CHECK(total_j >= 5 * 10 * kPeriod_s * 0.8);
    CHECK(total_j < 5 * (passed_s + 1));
  }
  for (const auto& line : lines) {
    // The first rank of the machine has its meter.
    CHECK(line["power_source"].is_null() == (line["rank"] != 0));
  }
}

TEST_CASE("a meter that fails gives one warning and a gap, and lines go on") {
  const Communicator world = Communicator::world();
  const tests::TemporaryFolder meters;
  tests::put_bytes(meters / "curve", "period 0.01\n0 5\n0.1 fail\n");
  std::vector<std::string> warnings;
  engine::MonitorOptions options;
  options.meters = {engine::parse_meter("file:" + (meters / "curve").string())};
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  const Lines lines = monitored(options, world, [&](Monitor& monitor, const RunClock& /*clock*/) {
    pass_periods(world, 20);
    monitor.finish();
  });
  CHECK(warnings.size() == (world.rank() == 0 ? 1U : 0U));
  nlohmann::json last;
  for (const auto& line : lines) {
    last = line["rank"] == 0 ? line : last;
  }
  if (world.rank() == 0) {
    CHECK(last["power_w"].is_null());
    CHECK(last["power_source"] == "file");
    CHECK(last["energy_j"].get<double>() > 0);
  }
}

TEST_CASE("a meter that was asked for and is not there ends the run on all ranks") {
  const Communicator world = Communicator::world();
  const RunClock clock(world);
  engine::MonitorOptions options;
  options.meters = {engine::parse_meter("file:/nowhere/at/all")};
  CHECK_THROWS_AS(Monitor(options, world, clock, nullptr), engine::AgreedError);
}

TEST_CASE("a monitor that nobody finishes ends all the same") {
  const Communicator world = Communicator::world();
  const Lines lines = monitored(
      {}, world, [&](Monitor& /*monitor*/, const RunClock& /*clock*/) { pass_periods(world, 2); });
  CHECK((world.rank() != 0 || !lines.empty()));
}

TEST_CASE("the clock of a run goes on where the last one stopped, the same on all ranks") {
  const Communicator world = Communicator::world();
  const RunClock clock(world, world.rank() == 0 ? 100.0 : 7.0);
  CHECK(clock.begun_s() == 100);
  CHECK(clock.t_s() >= 100);
  CHECK(clock.t_s() < 100 + 60);
}

}  // namespace
