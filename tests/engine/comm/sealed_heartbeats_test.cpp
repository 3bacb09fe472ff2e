#include "engine/comm/sealed_heartbeats.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

// Of `ranks` ranks that have a key for each two of them: what `rank` has.
SealedHeartbeats heartbeats_of(int rank, int ranks = 3, std::uint8_t run = 1) {
  std::vector<std::optional<DatagramKey>> keys;
  for (int peer = 0; peer < ranks; ++peer) {
    std::array<std::uint8_t, DatagramKey::kBytes> bytes{};
    bytes[0] = run;
    bytes[1] = static_cast<std::uint8_t>(1 << rank | 1 << peer);
    keys.push_back(peer == rank ? std::nullopt : std::optional(DatagramKey::from_bytes(bytes)));
  }
  return {rank, keys};
}

}  // namespace

TEST_CASE("a sealed heartbeat says who sent it and for how long that rank has been stuck") {
  SealedHeartbeats sender = heartbeats_of(2);
  SealedHeartbeats receiver = heartbeats_of(0);
  for (const double stuck_s : {0.0, 0.25, 70.5, 4e6}) {
    const auto datagram = sender.seal(0, stuck_s);
    REQUIRE(datagram);
    CHECK(datagram->size() == SealedHeartbeats::kBytes);
    const auto beat = receiver.open(2, *datagram);
    REQUIRE(beat);
    CHECK(beat->rank == 2);
    CHECK(beat->stuck_s == doctest::Approx(stuck_s));
  }
  CHECK(receiver.open(2, sender.seal(0, 1e300).value())->stuck_s == doctest::Approx(4e6));
}

TEST_CASE("a heartbeat that was recorded and is sent again is not heard") {
  SealedHeartbeats sender = heartbeats_of(2);
  SealedHeartbeats receiver = heartbeats_of(0);
  const auto recorded = sender.seal(0, 1).value();
  const auto held_back = sender.seal(0, 2).value();
  CHECK(receiver.open(2, recorded));
  CHECK_FALSE(receiver.open(2, recorded));
  CHECK(receiver.open(2, sender.seal(0, 3).value()));
  CHECK_FALSE(receiver.open(2, recorded));
  CHECK_FALSE(receiver.open(2, held_back));
}

TEST_CASE("a heartbeat is for one rank, and comes from the address of the one that sent it") {
  SealedHeartbeats first = heartbeats_of(0);
  SealedHeartbeats second = heartbeats_of(1);
  SealedHeartbeats third = heartbeats_of(2);
  const auto datagram = third.seal(0, 1).value();
  CHECK_FALSE(second.open(2, datagram));  // passed on to another rank
  CHECK_FALSE(third.open(0, datagram));   // sent back
  CHECK_FALSE(third.open(2, datagram));
  CHECK_FALSE(first.open(1, datagram));  // of another rank, by its own word
  CHECK_FALSE(first.open(0, datagram));
  auto renamed = datagram;
  renamed[4] = 1;  // the id of the sender
  CHECK_FALSE(first.open(1, renamed));
  CHECK_FALSE(first.open(2, renamed));
  auto longer = datagram;
  longer.push_back(0);
  CHECK_FALSE(first.open(2, longer));
  CHECK_FALSE(first.open(2, std::span(datagram).first(datagram.size() - 1)));
  CHECK_FALSE(first.open(2, {}));
  CHECK(first.open(2, datagram));
}

TEST_CASE("a rank of the same run cannot speak for another one") {
  SealedHeartbeats receiver = heartbeats_of(0);
  SealedHeartbeats second = heartbeats_of(1);
  // With the key that ranks 0 and 1 share, as if it were rank 2.
  std::array<std::uint8_t, DatagramKey::kBytes> bytes{1, 3};
  DatagramSealer as_third(DatagramKey::from_bytes(bytes), 2);
  const auto forged = as_third.seal(std::array<std::uint8_t, 4>{});
  REQUIRE(forged.size() == SealedHeartbeats::kBytes);
  CHECK_FALSE(receiver.open(2, forged));
  CHECK_FALSE(receiver.open(1, forged));
  CHECK(receiver.open(1, second.seal(0, 0).value()));
}

TEST_CASE("heartbeats of another run are not heard") {
  SealedHeartbeats other = heartbeats_of(2, 3, 9);
  SealedHeartbeats receiver = heartbeats_of(0);
  CHECK_FALSE(receiver.open(2, other.seal(0, 1).value()));
  CHECK(receiver.open(2, heartbeats_of(2).seal(0, 1).value()));
}

TEST_CASE("no part of the key is in a datagram") {
  const DatagramKey key = DatagramKey::random();
  SealedHeartbeats sender(0, {std::nullopt, key});
  for (int beat = 0; beat < 100; ++beat) {
    const auto datagram = sender.seal(1, beat).value();
    constexpr std::size_t kPart = 6;  // that few bytes are nowhere by chance
    for (std::size_t at = 0; at + kPart <= key.bytes().size(); ++at) {
      const auto part = key.bytes().subspan(at, kPart);
      CHECK(std::search(datagram.begin(), datagram.end(), part.begin(), part.end()) ==
            datagram.end());
    }
  }
}

TEST_CASE("without a key nothing is sealed and nothing heard") {
  SealedHeartbeats alone(0, {std::nullopt, std::nullopt});
  CHECK_FALSE(alone.seal(1, 0));
  CHECK_FALSE(alone.open(1, heartbeats_of(1).seal(0, 0).value()));
}

}  // namespace tessera::engine
