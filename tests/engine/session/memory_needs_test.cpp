// What the program itself takes of memory, as it is measured before training.

#include "engine/session/memory_needs.h"

#include <vector>

#include <doctest/doctest.h>

#include "engine/system/system_memory.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

constexpr Index kMebibyte = Index{1} << 20U;

}  // namespace

TEST_CASE("what the program itself takes is judged by what it takes now") {
  const Index before = engine::program_bytes_in_training();
  CHECK(before % kMebibyte == 0);
  CHECK(before > engine::resident_bytes());
  CHECK(before <= engine::resident_bytes() + 5 * kMebibyte);
  const std::vector<char> held(static_cast<std::size_t>(64 * kMebibyte), 1);
  CHECK(engine::program_bytes_in_training() >= before + 60 * kMebibyte);
  CHECK(held.back() == 1);
}

TEST_CASE("a rank alone has one figure of the program's own bytes") {
  const std::vector<Index> bytes = engine::program_bytes_of_ranks(engine::Communicator::self());
  REQUIRE(bytes.size() == 1);
  CHECK(bytes[0] > 0);
}
