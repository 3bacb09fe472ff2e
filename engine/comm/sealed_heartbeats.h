// Heartbeats as datagrams that only the rank they are meant for accepts, once, as of the rank that
// sent them (sealed_datagram): each two ranks have a key of their own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/comm/attendance.h"
#include "engine/comm/sealed_datagram.h"

namespace tessera::engine {

class SealedHeartbeats {
 public:
  // Milliseconds, little-endian, are the payload.
  static constexpr std::size_t kBytes = kSealBytes + sizeof(std::uint32_t);

  // For this rank, with its key with each rank; where there is none, nothing is sent or accepted.
  SealedHeartbeats(int rank, const std::vector<std::optional<DatagramKey>>& keys);

  // A heartbeat of this rank for another one, kBytes long; none without a key.
  [[nodiscard]] std::optional<std::vector<std::uint8_t>> seal(int peer, double stuck_s);

  // What came from the address of a rank. None unless that rank sealed it for this one and neither
  // it nor a later one of that rank was opened before. What has another size, version or sender is
  // refused before anything is computed.
  [[nodiscard]] std::optional<Heartbeat> open(int peer, std::span<const std::uint8_t> datagram);

 private:
  struct Peer {
    DatagramSealer sealer;
    DatagramOpener opener;
  };
  std::vector<std::optional<Peer>> peers_;  // [rank]
};

}  // namespace tessera::engine
