// Sums and exchanges among ranks with the same part.

#include "engine/comm/peers.h"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::Peers;

// Every second rank is one of this rank's.
std::vector<int> every_second(const Communicator& world) {
  std::vector<int> ranks;
  for (int rank = world.rank() % 2; rank < world.size(); rank += 2) {
    ranks.push_back(rank);
  }
  return ranks;
}

TEST_CASE("an average over peers is of all of them and of nobody else") {
  const Communicator world = Communicator::world();
  const std::vector<int> ranks = every_second(world);
  Peers peers(world, ranks);
  for (const std::size_t count : {0U, 1U, 3U, 1000U}) {
    std::vector<float> numbers(count);
    float expected = 0;
    for (const int rank : ranks) {
      expected += static_cast<float>(1 << rank);
    }
    for (std::size_t i = 0; i < count; ++i) {
      numbers[i] = static_cast<float>(1 << world.rank()) + static_cast<float>(i);
    }
    peers.average(numbers);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(numbers[i] ==
            doctest::Approx(expected / static_cast<float>(ranks.size()) + static_cast<float>(i)));
    }
  }
}

TEST_CASE("an average has the same bits on all peers") {
  const Communicator world = Communicator::world();
  Peers peers(world, every_second(world));
  std::vector<float> numbers(101);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = 1.0F / static_cast<float>(3 * i + static_cast<std::size_t>(world.rank()) + 1);
  }
  peers.average(numbers);
  const auto all = world.gather_all(std::as_bytes(std::span(std::as_const(numbers))));
  for (const int rank : peers.ranks()) {
    CHECK(all[static_cast<std::size_t>(rank)] == all[static_cast<std::size_t>(world.rank())]);
  }
}

TEST_CASE("the average of equal numbers is that number, bit for bit") {
  const Communicator world = Communicator::world();
  Peers peers(world, every_second(world));
  std::vector<float> numbers(101);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = 1.0F / static_cast<float>(3 * i + 1);
  }
  const std::vector<float> before = numbers;
  peers.average(numbers);
  CHECK(numbers == before);
}

TEST_CASE("peers get what each of them has") {
  const Communicator world = Communicator::world();
  Peers peers(world, every_second(world));
  std::vector<std::vector<std::byte>> messages(static_cast<std::size_t>(peers.size()),
                                               std::vector<std::byte>(5));
  messages[static_cast<std::size_t>(peers.index())].assign(5, std::byte(world.rank()));
  std::vector<std::span<std::byte>> all(messages.begin(), messages.end());
  peers.gather(all);
  for (int peer = 0; peer < peers.size(); ++peer) {
    const auto rank = static_cast<unsigned char>(peers.ranks()[static_cast<std::size_t>(peer)]);
    CHECK(messages[static_cast<std::size_t>(peer)] == std::vector<std::byte>(5, std::byte(rank)));
  }
}

TEST_CASE("two peers exchange what they have, and its bytes are counted") {
  const Communicator world = Communicator::world();
  Peers peers(world, every_second(world));
  const int partner = peers.index() ^ 1;
  if (partner >= peers.size()) {
    return;
  }
  const auto before = world.sent_bytes();
  const std::vector<std::byte> mine(7, std::byte(world.rank()));
  std::vector<std::byte> theirs(7);
  peers.exchange(partner, mine, theirs);
  const int rank = peers.ranks()[static_cast<std::size_t>(partner)];
  CHECK(theirs == std::vector<std::byte>(7, std::byte(rank)));
  CHECK(world.sent_bytes() - before == 7);
}

}  // namespace
