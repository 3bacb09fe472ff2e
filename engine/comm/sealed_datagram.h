// Datagrams by which those who share a key recognise each other on a network that others can read
// and write: a changed, forged or repeated datagram is refused.
//
//   bytes 0 to 3    "TSD1", the version
//         4 to 7    id of the sender, little-endian
//         8 to 15   counter, little-endian
//        16 ...     payload, at most kMostPayloadBytes
//        last 32    HMAC-SHA-512-256 of all before (libsodium's crypto_auth)
//
// Authenticated, not encrypted: who is alive is no secret. An AEAD's nonce would have to be the
// counter, and one that repeats, on a board whose clock goes back when it restarts, would give away
// the key of its tags; an HMAC does not mind.
//
// A key is good for one run or one connection. What an opener has not heard yet is new to it: one
// that starts late with an old key takes a datagram that was recorded before. Derive a key for each
// session where that matters.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::engine {

class DatagramKey {
 public:
  static constexpr std::size_t kBytes = 32;

  // From the system's random numbers. Throws std::runtime_error where there are none.
  [[nodiscard]] static DatagramKey random();

  [[nodiscard]] static DatagramKey from_bytes(std::span<const std::uint8_t, kBytes> bytes);

  ~DatagramKey();  // overwrites the bytes
  DatagramKey(const DatagramKey&) = default;
  DatagramKey& operator=(const DatagramKey&) = default;

  [[nodiscard]] std::span<const std::uint8_t, kBytes> bytes() const { return bytes_; }

  // Another key for each purpose ("session 3", "ranks 2 and 5"), by keyed BLAKE2b: who has it
  // learns nothing of this one.
  [[nodiscard]] DatagramKey derived(std::string_view purpose) const;

  // In the same time whatever the bytes are.
  [[nodiscard]] bool operator==(const DatagramKey& other) const;

 private:
  DatagramKey() = default;

  std::array<std::uint8_t, kBytes> bytes_{};
};

inline constexpr std::size_t kMostPayloadBytes = 1024;  // with all headers in one Ethernet frame
inline constexpr std::size_t kSealBytes = 48;  // that a datagram is longer than its payload

class DatagramSealer {
 public:
  // Each sender has an id of its own under this key. Counters begin with nanoseconds since 1970, so
  // that a sender which was restarted is newer than before it was.
  DatagramSealer(const DatagramKey& key, std::uint32_t sender);

  // Counters begin with `first_counter`, for those who number their sessions.
  DatagramSealer(const DatagramKey& key, std::uint32_t sender, std::uint64_t first_counter);

  // The datagram to send. Throws std::length_error if there are more than kMostPayloadBytes.
  [[nodiscard]] std::vector<std::uint8_t> seal(std::span<const std::uint8_t> payload);

 private:
  DatagramKey key_;
  std::uint32_t sender_;
  std::uint64_t counter_;
};

// The id of whom a datagram says it is from, for those who have a key for each sender. Nothing
// vouches for it before the datagram is opened. None where the version is another or the size
// impossible.
[[nodiscard]] std::optional<std::uint32_t> claimed_sender(std::span<const std::uint8_t> datagram);

struct OpenedDatagram {
  std::uint32_t sender = 0;
  std::uint64_t counter = 0;
  std::vector<std::uint8_t> payload;
};

class DatagramOpener {
 public:
  explicit DatagramOpener(const DatagramKey& key);

  // None for what was not sealed with this key, and for a counter not above the last that was
  // opened of its sender: datagrams that overtook each other count as lost. What has another
  // version or an impossible size is refused before anything is computed.
  [[nodiscard]] std::optional<OpenedDatagram> open(std::span<const std::uint8_t> datagram);

 private:
  DatagramKey key_;
  std::map<std::uint32_t, std::uint64_t> last_counters_;  // of senders; only who has the key adds
};

}  // namespace tessera::engine
