#include "engine/comm/rank_equality.h"

#include <string>

#include <doctest/doctest.h>

#include "engine/comm/agreement.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;

// What all ranks are told where rank `other` has another text; empty where nothing is wrong.
std::string refusal_of_text(int other) {
  const Communicator world = Communicator::world();
  try {
    engine::expect_same(world.rank() == other ? "b" : "a", "cut.toml", world);
  } catch (const engine::AgreedError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("all ranks are told which one has a different text than rank 0") {
  const int ranks = Communicator::world().size();
  CHECK(refusal_of_text(ranks).empty());
  CHECK(refusal_of_text(0).empty() == (ranks == 1));
  for (int other = 1; other < ranks; ++other) {
    const std::string message = refusal_of_text(other);
    CHECK(message.starts_with("rank " + std::to_string(other) + " ("));
    CHECK(message.find("has a different cut.toml than rank 0 (") != std::string::npos);
  }
}

}  // namespace
