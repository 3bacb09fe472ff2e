#include "engine/run_view/run_figures.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::known;
using engine::RunData;

engine::DeviceSample sample(double t_s, double cpu_s, double received) {
  engine::DeviceSample result;
  result.t_s = t_s;
  result.cpu_user_s = cpu_s;
  result.cpu_system_s = 0;
  result.rx_bytes = received;
  result.tx_bytes = 2 * received;
  return result;
}

TEST_CASE("nothing is known of an empty run") {
  const RunData data;
  const engine::RunProgress progress = progress_of(data);
  CHECK(progress.step == 0);
  CHECK(!known(progress.loss));
  CHECK(!known(progress.left_s));
  CHECK(!known(progress.elapsed_s));
  CHECK(devices_now(data).empty());
}

TEST_CASE("the time that is left counts what lies between steps") {
  RunData data;
  data.info.emplace();
  data.info->last_step = 30;
  data.info->epoch_steps = 20;
  for (int step = 1; step <= 10; ++step) {
    engine::StepRecord record;
    record.step = step;
    record.t_s = 2.0 * step;
    record.step_s = 1.5;
    record.energy_j = 3;
    data.steps.push_back(record);
  }
  const engine::RunProgress progress = progress_of(data);
  CHECK(progress.left_s == 40);
  CHECK(progress.step_s == 1.5);
  CHECK(progress.elapsed_s == 20);
  CHECK(progress.epoch == 0.5);
  CHECK(progress.epochs == 1.5);
  CHECK(progress.energy_j == 30);
  // What devices say counts also what lies between steps and behind the last.
  data.devices[0].energy_j = 25;
  data.devices[1].energy_j = 10;
  CHECK(progress_of(data).energy_j == 35);
  data.devices[0].cluster_energy_j = 50;
  CHECK(progress_of(data).energy_j == 50);
}

TEST_CASE("rates are those of the latest seconds, unknown where a process has just started") {
  RunData data;
  engine::RunDevice& device = data.devices[1];
  for (int t = 0; t <= 20; ++t) {
    device.samples.push_back(sample(t, t < 10 ? t : 10 + 3.0 * (t - 10), 100.0 * t));
  }
  engine::DeviceNow now = devices_now(data).at(1);
  CHECK(now.cores == doctest::Approx(3));
  CHECK(now.received_bytes_per_s == doctest::Approx(100));
  CHECK(now.sent_bytes_per_s == doctest::Approx(200));
  CHECK(!known(devices_now(data).at(0).cores));
  device.samples.push_back(sample(21, 0, 0));  // resumed
  now = devices_now(data).at(1);
  CHECK(!known(now.cores));
}

TEST_CASE("after a resume on fewer ranks there are the ranks that were started last") {
  RunData data;
  data.info.emplace();
  data.info->ranks = {{0, "pi1", 4}, {1, "pi3", 4}};
  data.memory.resize(3);
  for (const int rank : {0, 1, 2}) {
    data.devices[rank].samples.push_back(sample(10, 0, 0));
  }
  for (const int rank : {0, 1}) {
    data.devices[rank].samples.push_back(sample(50, 0, 0));
  }
  const std::vector<engine::DeviceNow> devices = devices_now(data);
  REQUIRE(devices.size() == 2);
  CHECK(devices[1].host == "pi3");
  CHECK(devices[1].silent_s == 0);
}

TEST_CASE("a device is silent for as long as others are not") {
  RunData data;
  data.devices[0].samples = {sample(1, 0, 0), sample(9, 0, 0)};
  data.devices[1].samples = {sample(2, 0, 0)};
  const auto devices = devices_now(data);
  CHECK(devices[0].silent_s == 0);
  CHECK(devices[1].silent_s == 7);
}

TEST_CASE("the text of a tile says what is cut") {
  engine::PlanOutline plan;
  plan.batch = 8;
  plan.ranks = 5;
  plan.layers = {{"convolutional", 16, 24, 24}};
  const Region whole{{0, 8}, {0, 16}, {0, 24}, {0, 24}};
  plan.groups = {{0, 0, false, std::vector<engine::OutlinedTile>(5, {whole, whole})}};
  auto& tiles = plan.groups[0].tiles;
  tiles[1].owned.rows = {0, 12};
  tiles[1].owned.cols = {12, 24};
  tiles[2].owned.images = {4, 8};
  tiles[3].owned.channels = {0, 8};
  tiles[4].owned.rows = {3, 3};
  CHECK(tile_text(plan, 0) == "all");
  CHECK(tile_text(plan, 1) == "r0-12 c12-24");
  CHECK(tile_text(plan, 2) == "i4-8");
  CHECK(tile_text(plan, 3) == "k0-8");
  CHECK(tile_text(plan, 4) == "idle");
  CHECK(tile_text(plan, 5).empty());
}

}  // namespace
