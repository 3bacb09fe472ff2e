#include "engine/comm/communicator.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/comm/channel_shares.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::ChannelShares;
using engine::Communicator;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_CASE("every rank's bytes reach every rank in rank order, of any length") {
  const Communicator world = Communicator::world();
  for (const int length : {0, 1, 1000, 300000}) {
    // Rank r gives r * length letters: rank 0 none at all.
    const auto expected = [length](int rank) {
      return std::string(static_cast<std::size_t>(rank * length), static_cast<char>('a' + rank));
    };
    const std::string mine = expected(world.rank());
    const auto all =
        world.gather_all(engine::bytes_of(mine.data(), static_cast<std::ptrdiff_t>(mine.size())));
    CHECK(static_cast<int>(all.size()) == world.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      CHECK(text_of(all[rank]) == expected(static_cast<int>(rank)));
    }
  }
}

TEST_CASE("ranks agree on the text of the lowest rank that has one") {
  const Communicator world = Communicator::world();
  CHECK(world.agree(std::nullopt) == std::nullopt);
  for (int lowest = 0; lowest < world.size(); ++lowest) {
    std::optional<std::string> mine;
    if (world.rank() >= lowest) {
      mine = "rank " + std::to_string(world.rank());
    }
    CHECK(world.agree(mine) == "rank " + std::to_string(lowest));
  }
  CHECK(world.agree(std::string()) == std::string());  // an empty text is one too
}

TEST_CASE("messages between two ranks with one tag arrive in the order of posting") {
  const Communicator world = Communicator::world();
  constexpr std::uint64_t kMessages = 20;
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  std::vector<std::uint64_t> sent(kMessages);
  std::vector<std::uint64_t> received(kMessages);
  engine::Requests requests;
  for (std::size_t i = 0; i < kMessages; ++i) {
    world.post_receive(requests, previous, 5, engine::bytes_of(&received[i], 1));
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    sent[i] = i;
    world.post_send(
        requests, next, 5, engine::bytes_of(static_cast<const std::uint64_t*>(&sent[i]), 1));
  }
  std::vector<bool> named(2 * kMessages);
  for (int i = requests.wait_any(); i >= 0; i = requests.wait_any()) {
    CHECK_FALSE(named[static_cast<std::size_t>(i)]);
    named[static_cast<std::size_t>(i)] = true;
  }
  CHECK(named == std::vector<bool>(2 * kMessages, true));
  CHECK(received == sent);
}

TEST_CASE("a message of more bytes than MPI can count is refused before anything is sent") {
  const Communicator world = Communicator::world();
  if constexpr (sizeof(std::size_t) > sizeof(int)) {
    const std::byte byte{};
    const auto too_many = static_cast<std::size_t>(std::numeric_limits<int>::max()) + 1;
    engine::Requests requests;
    CHECK_THROWS_AS(world.post_send(requests, world.rank(), 5, {&byte, too_many}),
                    std::logic_error);
  }
}

// The channels that each rank contributes, and those it needs.
using ChannelRanges = std::vector<Range>;

ChannelShares channel_shares(const Communicator& world,
                             const ChannelRanges& contributes,
                             const ChannelRanges& needs,
                             Index fields,
                             int tag) {
  std::vector<partitioner::Message> messages;
  for (int to = 0; to < world.size(); ++to) {
    for (int from = 0; from < world.size(); ++from) {
      const Range channels = intersect(contributes[static_cast<std::size_t>(from)],
                                       needs[static_cast<std::size_t>(to)]);
      if (from != to && !channels.empty()) {
        messages.push_back({from, to, partitioner::Payload::channels(channels)});
      }
    }
  }
  const auto own = static_cast<std::size_t>(world.rank());
  return {world, {contributes[own], needs[own]}, messages, fields, tag};
}

// Rank r contributes channels [r, r + 3) and needs all.
ChannelShares overlapping_shares(const Communicator& world, Index fields, int tag) {
  ChannelRanges contributes;
  for (int rank = 0; rank < world.size(); ++rank) {
    contributes.push_back({rank, rank + 3});
  }
  const Range all{0, world.size() + 2};
  return channel_shares(world, contributes, ChannelRanges(contributes.size(), all), fields, tag);
}

TEST_CASE("channel shares are every rank's in rank order, only of channels that it contributes") {
  const Communicator world = Communicator::world();
  ChannelShares shares = overlapping_shares(world, 2, 200);
  std::vector<double> mine;
  for (Index channel = world.rank(); channel < world.rank() + 3; ++channel) {
    mine.push_back(100.0 * world.rank() + static_cast<double>(channel));
    mine.push_back(-1);
  }
  for (int round = 0; round < 3; ++round) {
    shares.start(mine);
    shares.finish();
    REQUIRE(static_cast<int>(shares.all().size()) == world.size());
    for (int rank = 0; rank < world.size(); ++rank) {
      const engine::ChannelShare& share = shares.all()[static_cast<std::size_t>(rank)];
      CHECK(share.channels == Range{rank, rank + 3});
      const double* values = share.values;
      for (Index c = share.channels.begin; c < share.channels.end; ++c, values += 2) {
        CHECK(values[0] == 100.0 * rank + static_cast<double>(c));
        CHECK(values[1] == -1);
      }
    }
  }
}

TEST_CASE("channel shares of several layers may be under way at once, finished in any order") {
  const Communicator world = Communicator::world();
  ChannelShares first = overlapping_shares(world, 1, 220);
  ChannelShares second = overlapping_shares(world, 1, 221);
  const std::vector<double> ones{1, 1, 1};
  const std::vector<double> twos{2, 2, 2};
  first.start(ones);
  second.start(twos);
  second.finish();
  first.finish();
  CHECK(static_cast<int>(first.all().size()) == world.size());
  CHECK(static_cast<int>(second.all().size()) == world.size());
  for (const engine::ChannelShare& share : first.all()) {
    CHECK(share.values[0] == 1);
  }
  for (const engine::ChannelShare& share : second.all()) {
    CHECK(share.values[0] == 2);
  }
}

TEST_CASE("channel shares that are kept are those of this rank alone") {
  const Communicator world = Communicator::world();
  ChannelShares shares = overlapping_shares(world, 1, 230);
  const std::vector<double> mine{4, 5, 6};
  shares.keep(mine);
  REQUIRE(shares.all().size() == 1);
  CHECK(shares.all()[0].channels == Range{world.rank(), world.rank() + 3});
  CHECK(shares.all()[0].values == mine.data());
}

TEST_CASE(
    "a rank that needs no channel takes none, and one that contributes none is not waited for") {
  const Communicator world = Communicator::world();
  ChannelRanges contributes(static_cast<std::size_t>(world.size()));
  ChannelRanges needs = contributes;
  contributes.front() = {0, 4};
  needs.back() = {1, 3};
  ChannelShares shares = channel_shares(world, contributes, needs, 1, 210);
  const std::vector<double> mine =
      world.rank() == 0 ? std::vector<double>{1, 2, 3, 4} : std::vector<double>{};
  shares.start(mine);
  shares.finish();
  const bool last = world.rank() == world.size() - 1;
  CHECK(shares.all().size() == (last ? 1 : 0));
  if (last) {
    const engine::ChannelShare& share = shares.all()[0];
    CHECK(share.channels == Range{1, 3});
    CHECK(share.values[0] == 2);
    CHECK(share.values[1] == 3);
  }
}

}  // namespace
