#include "engine/monitor/device_log.h"

#include <string>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::DeviceLog;

constexpr const char* kLines =
    "{\"t_s\":1.5,\"rank\":0,\"step\":3,\"power_source\":\"rapl\",\"energy_j\":10.5}\n"
    "{\"t_s\":1.6,\"rank\":2,\"step\":3,\"power_source\":\"rapl\",\"energy_j\":4}\n"
    "{\"t_s\":2.5,\"rank\":0,\"step\":5,\"power_source\":\"rapl\",\"energy_j\":20}\n"
    "{\"t_s\":9.5,\"rank\":0,\"step\":8,\"power_source\":\"rapl\",\"energy_j\":90}\n"
    "{\"t_s\":9.6,\"rank\":1,\"st";

TEST_CASE("a run that starts keeps nothing of an earlier one") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "devices.jsonl", kLines);
  const DeviceLog log(folder / "devices.jsonl", 0);
  CHECK(log.kept_until_s() == 0);
  CHECK_FALSE(log.kept_energy().total_j);
  CHECK(tests::bytes_of(folder / "devices.jsonl").empty());
}

TEST_CASE("a run that goes on keeps the lines up to its step, and their time and energy") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "devices.jsonl", kLines);
  DeviceLog log(folder / "devices.jsonl", 5);
  CHECK(log.kept_until_s() == 2.5);
  const auto energy = log.kept_energy();
  CHECK(*energy.total_j == 24);
  CHECK(*energy.of_rank_j.at(0) == 20);
  CHECK_FALSE(energy.of_rank_j.at(1));
  CHECK(*energy.of_rank_j.at(2) == 4);
  log.lines().add_line("{\"step\":6}");
  const std::string text = tests::bytes_of(folder / "devices.jsonl");
  const std::string all = kLines;
  CHECK(text == all.substr(0, all.find("{\"t_s\":9.5")) + "{\"step\":6}\n");
}

TEST_CASE("the energy of a meter of the whole cluster is no board's") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "devices.jsonl",
                   "{\"t_s\":1,\"rank\":0,\"step\":1,\"power_source\":\"shelly (cluster)\","
                   "\"energy_j\":50}\n"
                   "{\"t_s\":1,\"rank\":1,\"step\":1,\"power_source\":\"rapl\",\"energy_j\":5}\n");
  const auto energy = DeviceLog(folder / "devices.jsonl", 1).kept_energy();
  CHECK(*energy.total_j == 50);
  CHECK_FALSE(energy.of_rank_j.at(0));
  CHECK(*energy.of_rank_j.at(1) == 5);
}

TEST_CASE("over a fault all lines stay, and devices that were there need their last power") {
  const tests::TemporaryFolder folder;
  const std::string lines =
      "{\"t_s\":1,\"rank\":3,\"step\":2,\"power_w\":9,\"energy_j\":7}\n"
      "{\"t_s\":9,\"rank\":0,\"step\":8,\"power_w\":5,\"energy_j\":40}\n"
      "{\"t_s\":10,\"rank\":1,\"step\":9,\"power_w\":2,\"energy_j\":20}\n"
      "{\"t_s\":10,\"rank\":2,\"step\":9,\"power_w\":3,\"energy_j\":30}\n";
  tests::put_bytes(folder / "devices.jsonl", lines);
  const DeviceLog log(folder / "devices.jsonl", 5, true);
  CHECK(tests::bytes_of(folder / "devices.jsonl") == lines);
  CHECK(log.kept_until_s() == 10);
  const auto energy = log.energy_at(14, 2);  // rank 2 is lost, rank 3 was before
  CHECK(*energy.of_rank_j.at(0) == 40 + 5 * 5);
  CHECK(*energy.of_rank_j.at(1) == 20 + 4 * 2);
  CHECK(*energy.of_rank_j.at(2) == 30);
  CHECK(*energy.of_rank_j.at(3) == 7);
  CHECK(*energy.total_j == 65 + 28 + 30 + 7);
  // Nobody knows what a day took.
  CHECK(*log.energy_at(86400, 2).of_rank_j.at(1) == 20 + DeviceLog::kLongestAssumed_s * 2);
}

TEST_CASE("lines that somebody has changed are taken in without harm") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "devices.jsonl",
                   "{\"step\":1,\"t_s\":\"x\",\"rank\":-5,\"energy_j\":3}\n"
                   "{\"step\":1,\"rank\":1e300,\"energy_j\":3,\"power_source\":7}\n"
                   "[1]\n{\"step\":\"1\"}\nnull\n\n");
  const DeviceLog log(folder / "devices.jsonl", 1);
  CHECK(log.kept_until_s() == 0);
  CHECK_FALSE(log.kept_energy().total_j);
}

}  // namespace
