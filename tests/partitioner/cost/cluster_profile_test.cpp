#include "partitioner/cost/cluster_profile.h"

#include <string>

#include "tests/support/random_cluster.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;
using tests::has;
using tests::input_error_of;

// `text` with the first `from` in it replaced.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

PowerProfile some_power() {
  PowerProfile power;
  power.source = "a \"meter\"";
  power.scope = PowerScope::Processor;
  power.relative_error = 0.02;
  power.idle_w = 1.0 / 3;
  power.busy_w = {2.25, 3, 3.5};
  power.sending_w = 0.75;
  power.receiving_w = 0.625;
  return power;
}

ClusterProfile two_devices() {
  ClusterProfile cluster = equal_devices({.count = 2});
  ConvolutionPoint point;
  point.forward_s = point.backward_data_s = point.backward_weights_s = 0.5;
  cluster.devices[1].convolutions = {point};
  cluster.exceptions = {{0, 1, {0.25, 1e6}}};
  cluster.all_reduces = {{2, 1024, 0.125}};
  return cluster;
}

}  // namespace

TEST_CASE("the text of a cluster profile reads back as the same profile") {
  Draw draw(17);
  for (int trial = 0; trial < 100; ++trial) {
    ClusterProfile cluster = tests::random_cluster(draw, static_cast<int>(draw.between(1, 6)));
    cluster.devices[0].name = trial == 0 ? "a \"name\"\n\\ \t\x7f" : "first";
    cluster.devices[0].copied_bytes_per_s = trial == 1 ? kInfiniteRate : 1.0 / 3;
    CHECK(parse_cluster_profile(to_text(cluster), "text") == cluster);
  }
}

TEST_CASE("a profile of before exponentials were measured reads, and they take no time") {
  ClusterProfile cluster = equal_devices({.count = 1});
  cluster.devices[0].exponential = {1e6, 2e6};
  const std::string text = to_text(cluster);
  const std::size_t line = text.find("exponential_bytes_per_s");
  REQUIRE(line != std::string::npos);
  const std::string older = std::string(text).erase(line, text.find('\n', line) + 1 - line);
  cluster.devices[0].exponential = {};
  CHECK(parse_cluster_profile(older, "text") == cluster);
}

TEST_CASE("a device of which nothing is known yet reads back") {
  ClusterProfile cluster;
  cluster.devices.emplace_back().name = "new";
  CHECK(parse_cluster_profile(to_text(cluster), "text") == cluster);
}

TEST_CASE("power reads back, also where little is known of it") {
  ClusterProfile cluster = two_devices();
  cluster.devices[0].power = some_power();
  CHECK(parse_cluster_profile(to_text(cluster), "text") == cluster);
  PowerProfile little;
  little.estimated = true;
  little.busy_w = {2};
  cluster.devices[1].power = little;
  CHECK(parse_cluster_profile(to_text(cluster), "text") == cluster);
}

TEST_CASE("a device may name its board, which has to be known") {
  ClusterProfile cluster = two_devices();
  cluster.devices[0].board = "pi5";
  cluster.devices[1].board = "";
  CHECK(parse_cluster_profile(to_text(cluster), "text") == cluster);
  CHECK(has(input_error_of([&] {
              (void)parse_cluster_profile(edited(to_text(cluster), "\"pi5\"", "\"pi6\""), "p.toml");
            }),
            "`board`: no power is known of the board \"pi6\""));
}

TEST_CASE("what a device takes without a network is part of its memory, or was left out of it") {
  const ClusterProfile cluster = two_devices();
  CHECK(cluster.device(0).program_bytes == kUsualProgramBytes);
  std::string text = to_text(cluster);
  for (int i = 0; i < cluster.size(); ++i) {
    text = edited(text, "program_bytes = 26214400\n", "");
  }
  CHECK(parse_cluster_profile(text, "p.toml").device(1).program_bytes == 0);
}

TEST_CASE("devices that are alike share one description") {
  const std::string text = to_text(equal_devices({.count = 3}));
  CHECK(has(text, "names = [\"device0\", \"device1\", \"device2\"]"));
  CHECK(text.find("[[device]]") == text.rfind("[[device]]"));
}

TEST_CASE("a faulty cluster profile is refused with its name and the line") {
  const std::string sound = to_text(two_devices());
  struct Fault {
    const char* from;
    const char* to;
    const char* expected;
  };
  const Fault faults[] = {
      {"[link]", "[link", "p.toml:6: this is not TOML"},
      {"[link]", "[lynk]", "p.toml:6: unknown key `lynk`, expected one of: link"},
      {"latency_s = 0.00015",
       "latency_s = -1.0",
       "p.toml:7: `latency_s` is -1, expected 0 or more"},
      {"latency_s = 0.00015", "latency_s = inf", "p.toml:7: `latency_s` is inf"},
      {"latency_s = 0.00015", "latency_s = nan", "p.toml:7: `latency_s` is nan"},
      {"latency_s = 0.00015", "latency_s = \"1\"", "p.toml:7: `latency_s` is not a number"},
      {"latency_s = 0.00015", "", "`latency_s` is missing"},
      {"bytes_per_s = 12500000",
       "bytes_per_s = 0",
       "p.toml:8: `bytes_per_s` is 0, expected 1e-18 or more"},
      {"bytes_per_s = 12500000", "bytes_per_s = 1e-320", "p.toml:8: `bytes_per_s` is 1e-320"},
      {"bytes_per_s = 12500000",
       "bytes_per_s = 1e308",
       "p.toml:8: `bytes_per_s` is 1e+308, expected 1e-18 or more, at most 1e+18 or inf"},
      {"bytes_per_s = 12500000", "bytes_per_s = 9223372036854775807", "p.toml:8: `bytes_per_s`"},
      {"bytes_per_s = 12500000", "bytes_per_s = nan", "p.toml:8: `bytes_per_s` is nan"},
      {"latency_s = 0.00015",
       "latency_s = 1e308",
       "p.toml:7: `latency_s` is 1e+308, expected 0 or more, at most 1e+09"},
      {"memory_bytes = 943718400",
       "memory_bytes = 9223372036854775807",
       "p.toml:12: `memory_bytes` is 9223372036854775807, expected 1 to 281474976710656"},
      {"program_bytes = 26214400",
       "program_bytes = 9223372036854775807",
       "p.toml:13: `program_bytes` is 9223372036854775807, expected 0 to 281474976710656"},
      {"forward_s = 0.5", "forward_s = 1e308", "`forward_s` is 1e+308"},
      {"forward_s = 0.5", "forward_s = inf", "`forward_s` is inf"},
      {"channels = 1,", "channels = 9223372036854775807,", "`channels` is 9223372036854775807"},
      {"filters = 1, size = 1,", "filters = 1000000000, size = 1000000,", "operations"},
      {"devices = 2", "devices = 9223372036854775807", "`devices` is 9223372036854775807"},
      {"bytes = 1024", "bytes = 9223372036854775807", "`bytes` is 9223372036854775807"},
      {"names = [\"device0\"]", "names = []", "p.toml:11: `names` is not a list"},
      {"names = [\"device0\"]", "names = [3]", "p.toml:11: `names` is not a string"},
      {"names = [\"device0\"]",
       "names = [\"a\", \"b\", \"a\"]",
       "p.toml:11: `names` has \"a\" for a second device"},
      {"names = [\"device1\"]", "names = [\"device0\"]", "`names` has \"device0\" for a second"},
      {"memory_bytes = 943718400",
       "memory_bytes = 1.5",
       "p.toml:12: `memory_bytes` is not an integer"},
      {"memory_bytes = 943718400", "memory_bytes = 0", "p.toml:12: `memory_bytes` is 0"},
      {"normalize_bytes_per_s = {",
       "normalize_bytes_per_s = 3 # {",
       "`normalize_bytes_per_s` is not"},
      {"kernel = \"direct\"", "kernel = \"fast\"", "`kernel` is unknown"},
      {"groups = 1", "groups = 2", "`groups` does not divide"},
      {"size = 1", "sides = 1", "unknown key `sides`"},
      {"from = \"device0\"",
       "from = \"device7\"",
       "`from` is \"device7\", but no device has that name"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.to);
    const std::string message = input_error_of(
        [&] { (void)parse_cluster_profile(edited(sound, fault.from, fault.to), "p.toml"); });
    CAPTURE(message);
    CHECK(has(message, "p.toml:"));
    CHECK(has(message, fault.expected));
  }
  CHECK(has(input_error_of([] { (void)parse_cluster_profile("", "p.toml"); }), "no devices"));
  CHECK(has(input_error_of([] { (void)read_cluster_profile("/nowhere/p.toml"); }),
            "cannot be read (No such file or directory): expected a cluster profile"));
}

TEST_CASE("faulty power is refused with the line") {
  ClusterProfile cluster = equal_devices({.count = 1});
  cluster.devices[0].power = some_power();
  const std::string sound = to_text(cluster);
  const auto refusal = [&](const char* from, const char* to) {
    return input_error_of([&] { (void)parse_cluster_profile(edited(sound, from, to), "p.toml"); });
  };
  CHECK(has(refusal("idle_w = 0.3", "idle_w = -0.3"), "`idle_w` is -0.3"));
  CHECK(has(refusal("sending_w = 0.75", "sending_w = inf"), "`sending_w` is inf, expected 0 to"));
  CHECK(has(refusal("busy_w = [2.25, 3, 3.5]", "busy_w = []"), "`busy_w` is not a list of watts"));
  CHECK(has(refusal("2.25", "nan"), "`busy_w` is nan"));
  CHECK(has(refusal("relative_error = 0.02", "relative_error = 2"), "expected 0 to 1"));
  CHECK(has(refusal("\"processor\"", "\"board\""), "`scope` is unknown, expected processor"));
  CHECK(has(refusal("estimated = false", "estimated = 0"), "`estimated` is not true or false"));
  CHECK(has(refusal("idle_w = ", "idle = "), "unknown key `idle`"));
  const std::string without = to_text(equal_devices({.count = 1}));
  CHECK(has(input_error_of([&] {
              (void)parse_cluster_profile(edited(without, "[[device]]", "[[device]]\npower = 3"),
                                          "p.toml");
            }),
            "`power` is not a table: write it under [device.power]"));
}

TEST_CASE("a pair of devices has the link that is listed for it, in that direction") {
  const ClusterProfile cluster = two_devices();
  CHECK(cluster.between(0, 1) == LinkProfile{0.25, 1e6});
  CHECK(cluster.between(1, 0) == cluster.link);
}

TEST_CASE("a part of a cluster keeps nothing of devices that are not in it") {
  const ClusterProfile one = first_devices(two_devices(), 1);
  CHECK(one.size() == 1);
  CHECK(one.exceptions.empty());
  CHECK(one.all_reduces.empty());
}

TEST_CASE("devices of a cluster keep their links and what was measured of the same first ones") {
  ClusterProfile cluster = equal_devices({.count = 4});
  cluster.exceptions = {{0, 3, {1, 1e3}}, {2, 1, {2, 2e3}}, {3, 0, {3, 3e3}}};
  cluster.all_reduces = {{1, 10, 0.1}, {2, 10, 0.2}, {4, 10, 0.4}};
  const ClusterProfile part = devices_of(cluster, {3, 0, 2});
  REQUIRE(part.size() == 3);
  CHECK(part.device(0).name == "device3");
  CHECK(part.between(0, 1) == LinkProfile{3, 3e3});
  CHECK(part.between(1, 0) == LinkProfile{1, 1e3});
  CHECK(part.between(2, 0) == cluster.link);
  CHECK(part.exceptions.size() == 2);
  CHECK(part.all_reduces.empty());
  CHECK(devices_of(cluster, {0, 1, 3}).all_reduces.size() == 2);
  CHECK(devices_of(cluster, {0, 1, 2}) == first_devices(cluster, 3));
}
