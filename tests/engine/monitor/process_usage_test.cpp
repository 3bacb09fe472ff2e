#include "engine/monitor/process_usage.h"

#include <ctime>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/system/system_memory.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BusyCores;

TEST_CASE("processor time grows as the process uses it") {
  const auto before = engine::process_times();
  const double start_s = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  double now_s = start_s;
  while (now_s < start_s + 0.05) {
    now_s = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  }
  const auto after = engine::process_times();
  const double used_s = after.user_s + after.system_s - before.user_s - before.system_s;
  CHECK(used_s >= 0.04);  // the kernel may count by ticks
  CHECK(after.user_s >= before.user_s);
  CHECK(after.system_s >= before.system_s);
}

TEST_CASE("resident bytes are about those of /proc/self/status") {
  const auto bytes = engine::resident_now_bytes("/");
  REQUIRE(bytes);
  const auto status = static_cast<double>(engine::resident_bytes());
  CHECK(*bytes > 0.9 * status);
  CHECK(*bytes < 1.1 * status);
  CHECK_FALSE(engine::resident_now_bytes("/nowhere"));
}

TEST_CASE("busy cores are the share of time that was not idle, of all processors") {
  const tests::TemporaryFolder root;
  std::filesystem::create_directories(root / "proc");
  const auto put = [&](const std::string& sum) {
    tests::put_bytes(root / "proc/stat",
                     "cpu  " + sum + "\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\nintr 5\n");
  };
  put("100 0 50 800 50 0 0 0 0 0");
  BusyCores busy(root.path());
  CHECK(busy.look() == 0);              // no time has passed
  put("160 10 70 1000 150 5 5 0 0 0");  // 100 of 400 ticks
  CHECK(busy.look() == doctest::Approx(1));
  put("160 10 70 1000 150 5 5 100 0 0");  // taken by the hypervisor
  CHECK(busy.look() == 0);
  tests::put_bytes(root / "proc/stat", "nonsense\n");
  CHECK(busy.look() == 0);
}

}  // namespace
