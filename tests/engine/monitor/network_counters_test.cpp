#include "engine/monitor/network_counters.h"

#include <string>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::NetworkCounters;
using engine::NetworkUse;

constexpr const char* kHead =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n";

class FakeNetwork {
 public:
  void put(const std::string& lines) {
    std::filesystem::create_directories(folder_ / "proc/net");
    tests::put_bytes(folder_ / "proc/net/dev", kHead + lines);
  }
  [[nodiscard]] std::filesystem::path root() const { return folder_.path(); }

 private:
  tests::TemporaryFolder folder_;
};

TEST_CASE("an interface is found by its whole name, with or without a space behind the colon") {
  FakeNetwork network;
  network.put(
      "    lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
      "  eth0: 1000 10 1 2 3 4 5 6 2000 20 7 8 9 10 11 12\n"
      "eth0.100:3000 30 0 0 0 0 0 0 4000 40 0 0 0 0 0 0\n");
  CHECK(engine::interface_counters(network.root(), "eth0") == NetworkCounters{1000, 10, 2000, 20});
  CHECK(engine::interface_counters(network.root(), "eth0.100") ==
        NetworkCounters{3000, 30, 4000, 40});
  CHECK_FALSE(engine::interface_counters(network.root(), "eth"));
  CHECK_FALSE(engine::interface_counters(network.root(), ""));
  CHECK_FALSE(engine::interface_counters(network.root() / "nowhere", "lo"));
}

TEST_CASE("what has gone through an interface counts from the first look on") {
  FakeNetwork network;
  network.put("eth0: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n");
  NetworkUse use(network.root(), "eth0");
  CHECK(use.look() == NetworkCounters{0, 0, 0, 0});
  network.put("eth0: 1500 12 0 0 0 0 0 0 2700 29 0 0 0 0 0 0\n");
  CHECK(use.look() == NetworkCounters{500, 2, 700, 9});
  network.put("wlan0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");  // out
  CHECK_FALSE(use.look());
  network.put("eth0: 40 4 0 0 0 0 0 0 50 5 0 0 0 0 0 0\n");  // in again
  CHECK(use.look() == NetworkCounters{540, 6, 750, 14});
}

TEST_CASE("a counter of 32 bits wraps, another one starts again") {
  CHECK(engine::counter_growth(10, 25) == 15);
  CHECK(engine::counter_growth(4294967290.0, 4) == 10);
  CHECK(engine::counter_growth(1000, 4) == 4);
  CHECK(engine::counter_growth(5e12, 4) == 4);
}

}  // namespace
