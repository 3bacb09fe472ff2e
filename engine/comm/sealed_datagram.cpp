#include "engine/comm/sealed_datagram.h"

#include <algorithm>
#include <chrono>
#include <sodium.h>
#include <stdexcept>

namespace tessera::engine {

namespace {

constexpr std::array<std::uint8_t, 4> kSealVersion{'T', 'S', 'D', '1'};
constexpr std::size_t kSenderAt = 4;
constexpr std::size_t kCounterAt = 8;
constexpr std::size_t kPayloadAt = 16;
constexpr std::size_t kTagBytes = crypto_auth_BYTES;

static_assert(kPayloadAt + kTagBytes == kSealBytes);
static_assert(DatagramKey::kBytes == crypto_auth_KEYBYTES);
static_assert(DatagramKey::kBytes <= crypto_generichash_KEYBYTES_MAX);
static_assert(DatagramKey::kBytes <= crypto_generichash_BYTES_MAX);

template <class Number>
void put_little_endian(Number number, std::uint8_t* bytes) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
}

template <class Number>
Number little_endian(const std::uint8_t* bytes) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= static_cast<Number>(bytes[i]) << (8 * i);
  }
  return number;
}

std::uint64_t nanoseconds_since_1970() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

}  // namespace

DatagramKey DatagramKey::random() {
  if (sodium_init() < 0) {
    throw std::runtime_error("the system has no random numbers for a key");
  }
  DatagramKey key;
  randombytes_buf(key.bytes_.data(), kBytes);
  return key;
}

DatagramKey DatagramKey::from_bytes(std::span<const std::uint8_t, kBytes> bytes) {
  DatagramKey key;
  std::copy(bytes.begin(), bytes.end(), key.bytes_.begin());
  return key;
}

DatagramKey::~DatagramKey() {
  sodium_memzero(bytes_.data(), kBytes);
}

DatagramKey DatagramKey::derived(std::string_view purpose) const {
  DatagramKey key;
  crypto_generichash(key.bytes_.data(),
                     kBytes,
                     reinterpret_cast<const std::uint8_t*>(purpose.data()),
                     purpose.size(),
                     bytes_.data(),
                     kBytes);
  return key;
}

bool DatagramKey::operator==(const DatagramKey& other) const {
  return sodium_memcmp(bytes_.data(), other.bytes_.data(), kBytes) == 0;
}

DatagramSealer::DatagramSealer(const DatagramKey& key, std::uint32_t sender)
    : DatagramSealer(key, sender, nanoseconds_since_1970()) {}

DatagramSealer::DatagramSealer(const DatagramKey& key,
                               std::uint32_t sender,
                               std::uint64_t first_counter)
    : key_(key), sender_(sender), counter_(first_counter) {}

std::vector<std::uint8_t> DatagramSealer::seal(std::span<const std::uint8_t> payload) {
  if (payload.size() > kMostPayloadBytes) {
    throw std::length_error("the payload of a datagram is too long");
  }
  std::vector<std::uint8_t> datagram(payload.size() + kSealBytes);
  std::copy(kSealVersion.begin(), kSealVersion.end(), datagram.begin());
  put_little_endian(sender_, datagram.data() + kSenderAt);
  put_little_endian(counter_++, datagram.data() + kCounterAt);
  std::copy(payload.begin(), payload.end(), datagram.begin() + kPayloadAt);
  const std::size_t signed_bytes = datagram.size() - kTagBytes;
  crypto_auth(datagram.data() + signed_bytes, datagram.data(), signed_bytes, key_.bytes().data());
  return datagram;
}

std::optional<std::uint32_t> claimed_sender(std::span<const std::uint8_t> datagram) {
  if (datagram.size() < kSealBytes || datagram.size() > kSealBytes + kMostPayloadBytes ||
      !std::equal(kSealVersion.begin(), kSealVersion.end(), datagram.begin())) {
    return std::nullopt;
  }
  return little_endian<std::uint32_t>(datagram.data() + kSenderAt);
}

DatagramOpener::DatagramOpener(const DatagramKey& key) : key_(key) {}

std::optional<OpenedDatagram> DatagramOpener::open(std::span<const std::uint8_t> datagram) {
  const auto sender = claimed_sender(datagram);
  if (!sender) {
    return std::nullopt;
  }
  const std::size_t signed_bytes = datagram.size() - kTagBytes;
  if (crypto_auth_verify(
          datagram.data() + signed_bytes, datagram.data(), signed_bytes, key_.bytes().data()) !=
      0) {
    return std::nullopt;
  }
  OpenedDatagram opened;
  opened.sender = *sender;
  opened.counter = little_endian<std::uint64_t>(datagram.data() + kCounterAt);
  const auto [last, first_heard] = last_counters_.try_emplace(opened.sender, opened.counter);
  if (!first_heard && opened.counter <= last->second) {
    return std::nullopt;
  }
  last->second = opened.counter;
  const auto payload = datagram.subspan(kPayloadAt, signed_bytes - kPayloadAt);
  opened.payload.assign(payload.begin(), payload.end());
  return opened;
}

}  // namespace tessera::engine
