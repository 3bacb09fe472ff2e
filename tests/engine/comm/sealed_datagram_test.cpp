#include "engine/comm/sealed_datagram.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

using DatagramBytes = std::vector<std::uint8_t>;

DatagramKey key_of(std::uint8_t byte) {
  std::array<std::uint8_t, DatagramKey::kBytes> bytes{};
  bytes.fill(byte);
  return DatagramKey::from_bytes(bytes);
}

}  // namespace

TEST_CASE("a sealed datagram opens with its sender, counter and payload") {
  DatagramSealer sealer(key_of(1), 0xfedcba98U, 0x0123456789abcdefU);
  DatagramOpener opener(key_of(1));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kMostPayloadBytes}) {
    const DatagramBytes payload(size, 7);
    const DatagramBytes datagram = sealer.seal(payload);
    CHECK(datagram.size() == size + kSealBytes);
    const auto opened = opener.open(datagram);
    REQUIRE(opened);
    CHECK(opened->sender == 0xfedcba98U);
    CHECK(opened->payload == payload);
  }
  CHECK(opener.open(sealer.seal({}))->counter == 0x0123456789abcdefU + 3);
  CHECK_THROWS_AS((void)sealer.seal(DatagramBytes(kMostPayloadBytes + 1)), std::length_error);
}

TEST_CASE("the header of a datagram has the same bytes on every machine") {
  const DatagramBytes datagram =
      DatagramSealer(key_of(1), 0x04030201U, 0x0807060504030201U).seal(DatagramBytes{9});
  const DatagramBytes header{'T', 'S', 'D', '1', 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(std::equal(header.begin(), header.end(), datagram.begin()));
}

TEST_CASE("whom a datagram says it is from is read without a key, where it may be a datagram") {
  DatagramBytes datagram = DatagramSealer(key_of(1), 0x04030201U).seal(DatagramBytes{9});
  CHECK(claimed_sender(datagram) == 0x04030201U);
  datagram[4] = 7;
  CHECK(claimed_sender(datagram) == 0x04030207U);
  CHECK_FALSE(claimed_sender(std::span(datagram).first(kSealBytes - 1)));
  datagram[3] = '2';
  CHECK_FALSE(claimed_sender(datagram));
  CHECK_FALSE(claimed_sender({}));
}

TEST_CASE("another key opens nothing") {
  DatagramSealer sealer(key_of(1), 0);
  const DatagramBytes datagram = sealer.seal(DatagramBytes{1, 2, 3});
  CHECK_FALSE(DatagramOpener(key_of(2)).open(datagram));
  CHECK_FALSE(DatagramOpener(key_of(1).derived("ranks 0 and 1")).open(datagram));
  CHECK(DatagramOpener(key_of(1)).open(datagram));
}

TEST_CASE("a datagram with any one bit changed is refused and does not move the counter") {
  DatagramSealer sealer(key_of(1), 5, 100);
  const DatagramBytes datagram = sealer.seal(DatagramBytes{1, 2, 3});
  DatagramOpener opener(key_of(1));
  for (std::size_t bit = 0; bit < 8 * datagram.size(); ++bit) {
    DatagramBytes changed = datagram;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    CAPTURE(bit);
    CHECK_FALSE(opener.open(changed));
  }
  CHECK(opener.open(datagram));
}

TEST_CASE("a datagram that is shorter or longer than it was sealed is refused") {
  DatagramSealer sealer(key_of(1), 5);
  const DatagramBytes datagram = sealer.seal(DatagramBytes{1, 2, 3});
  DatagramOpener opener(key_of(1));
  for (std::size_t size = 0; size < datagram.size(); ++size) {
    CHECK_FALSE(opener.open(std::span(datagram).first(size)));
  }
  DatagramBytes longer = datagram;
  longer.push_back(0);
  CHECK_FALSE(opener.open(longer));
  longer.resize(70000);
  CHECK_FALSE(opener.open(longer));
  CHECK(opener.open(datagram));
}

TEST_CASE("a datagram that was opened does not open again, nor one that it overtook") {
  DatagramSealer sealer(key_of(1), 5);
  DatagramSealer other(key_of(1), 6, 0);
  DatagramOpener opener(key_of(1));
  const DatagramBytes first = sealer.seal({});
  const DatagramBytes second = sealer.seal({});
  const DatagramBytes third = sealer.seal({});
  CHECK(opener.open(first));
  CHECK_FALSE(opener.open(first));
  CHECK(opener.open(third));
  CHECK_FALSE(opener.open(second));
  CHECK_FALSE(opener.open(third));
  CHECK(opener.open(other.seal({})));  // counters of senders are their own
  CHECK(opener.open(sealer.seal({})));
}

TEST_CASE("a sender that was restarted is newer than before, and its old datagrams stay refused") {
  DatagramOpener opener(key_of(1));
  DatagramSealer before(key_of(1), 5);
  const DatagramBytes old = before.seal({});
  const DatagramBytes recorded = before.seal({});
  CHECK(opener.open(old));
  DatagramSealer numbered(key_of(1), 5, std::uint64_t{1} << 63U);
  CHECK(opener.open(numbered.seal({})));
  CHECK_FALSE(opener.open(recorded));

  DatagramOpener by_clock(key_of(1));
  CHECK(by_clock.open(old));
  DatagramSealer after(key_of(1), 5);
  CHECK(by_clock.open(after.seal({})));
}

TEST_CASE("garbage is refused, with and without the version at its start") {
  std::mt19937 random(3);
  DatagramOpener opener(key_of(1));
  for (int round = 0; round < 2000; ++round) {
    DatagramBytes garbage(random() % (kSealBytes + 20));
    for (std::uint8_t& byte : garbage) {
      byte = static_cast<std::uint8_t>(random());
    }
    const std::string_view version = "TSD1";
    if (round % 2 == 1 && garbage.size() >= version.size()) {
      std::copy(version.begin(), version.end(), garbage.begin());
    }
    CHECK_FALSE(opener.open(garbage));
  }
}

TEST_CASE("no two random keys are the same") {
  CHECK_FALSE(DatagramKey::random() == DatagramKey::random());
}

TEST_CASE("a derived key depends on its purpose and on the key, and on nothing else") {
  const DatagramKey key = key_of(1);
  CHECK(key.derived("session 1") == key.derived("session 1"));
  CHECK_FALSE(key.derived("session 1") == key.derived("session 2"));
  CHECK_FALSE(key.derived("session 1") == key_of(2).derived("session 1"));
  CHECK_FALSE(key.derived("") == key);
}

}  // namespace tessera::engine
