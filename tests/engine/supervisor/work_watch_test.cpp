#include "engine/supervisor/work_watch.h"

#include <fstream>

#include <doctest/doctest.h>

#include "engine/system/clock.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::SignOfWork;
using engine::WorkSoFar;
using engine::WorkWatch;

constexpr double kLook_s = 0.25;

// What is said while so much is done in each second, for that many of them.
struct Told {
  int works = 0;
  int stuck = 0;
};
Told told(WorkWatch& watch, const WorkSoFar& each_s, double seconds) {
  static_assert(kLook_s > 0);
  Told all;
  WorkSoFar now;
  now.waits = each_s.waits;
  for (double t = 0; t < seconds; t += kLook_s) {
    now.processor_s += kLook_s * each_s.processor_s;
    now.bytes += static_cast<Index>(kLook_s * static_cast<double>(each_s.bytes));
    const SignOfWork sign = watch.add(now, t);
    all.works += sign == SignOfWork::Works ? 1 : 0;
    all.stuck += sign == SignOfWork::Stuck ? 1 : 0;
  }
  return all;
}

TEST_CASE("a process works while it computes, and while a very slow disk gives it a little") {
  WorkWatch computes;
  CHECK(told(computes, {.processor_s = 0.2}, 120).works >= 40);
  WorkWatch reads;
  CHECK(told(reads, {.processor_s = 0.001, .bytes = 20000}, 120).works >= 8);
  WorkWatch uncounted;  // by this kernel
  int works = 0;
  for (int i = 0; i < 480; ++i) {
    const SignOfWork sign = uncounted.add({.bytes = engine::kUnknownBytes}, i * kLook_s);
    CHECK(sign != SignOfWork::Stuck);
    works += sign == SignOfWork::Works ? 1 : 0;
  }
  CHECK(works >= 100);
}

TEST_CASE("a process that hangs is stuck, whatever its threads in the background take") {
  WorkWatch watch;
  const Told all = told(watch, {.processor_s = 0.002, .bytes = 1000}, 120);
  CHECK(all.works == 1);  // its beginning
  CHECK(all.stuck >= 10);
}

TEST_CASE("who waits for messages neither works nor is stuck, however much it looks for them") {
  WorkWatch watch;
  const Told all = told(watch, {.processor_s = 1, .waits = {.waiting = true}}, 120);
  CHECK(all.works == 1);
  CHECK(all.stuck == 0);
}

TEST_CASE("a message that comes is a sign of work, told once a second at most") {
  WorkWatch watch;
  int works = 0;
  for (int i = 0; i < 400; ++i) {
    const WorkSoFar now{.waits = {.waiting = true, .ended = static_cast<std::uint32_t>(i)}};
    works += watch.add(now, i * kLook_s) == SignOfWork::Works ? 1 : 0;
  }
  CHECK(works >= 90);
  CHECK(works <= 101);
}

TEST_CASE("what this process has done is counted, but for what the calling thread computes") {
  const WorkSoFar before = engine::work_so_far({});
  REQUIRE(before.bytes != engine::kUnknownBytes);
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string bytes(std::size_t{1} << 20U, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const double begun_s = engine::now_s();
  while (engine::now_s() - begun_s < 0.2) {
  }
  const WorkSoFar after = engine::work_so_far({});
  CHECK(after.bytes - before.bytes >= file.gcount());
  CHECK(after.processor_s - before.processor_s < 0.15);
}

}  // namespace
