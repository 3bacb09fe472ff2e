#include "engine/comm/sealed_heartbeats.h"

#include <algorithm>
#include <array>

namespace tessera::engine {

SealedHeartbeats::SealedHeartbeats(int rank, const std::vector<std::optional<DatagramKey>>& keys) {
  for (const auto& key : keys) {
    auto& peer = peers_.emplace_back();
    if (key) {
      peer.emplace(
          Peer{DatagramSealer(*key, static_cast<std::uint32_t>(rank)), DatagramOpener(*key)});
    }
  }
}

std::optional<std::vector<std::uint8_t>> SealedHeartbeats::seal(int peer, double stuck_s) {
  constexpr double kMostS = 4e6;
  auto& with = peers_[static_cast<std::size_t>(peer)];
  if (!with) {
    return std::nullopt;
  }
  const auto stuck_ms = static_cast<std::uint32_t>(1e3 * std::min(stuck_s, kMostS));
  std::array<std::uint8_t, sizeof stuck_ms> payload{};
  for (std::size_t i = 0; i < payload.size(); ++i) {
    payload[i] = static_cast<std::uint8_t>(stuck_ms >> (8 * i));
  }
  return with->sealer.seal(payload);
}

std::optional<Heartbeat> SealedHeartbeats::open(int peer, std::span<const std::uint8_t> datagram) {
  auto& with = peers_[static_cast<std::size_t>(peer)];
  if (!with || datagram.size() != kBytes ||
      claimed_sender(datagram) != static_cast<std::uint32_t>(peer)) {
    return std::nullopt;
  }
  const auto opened = with->opener.open(datagram);
  if (!opened) {
    return std::nullopt;
  }
  std::uint32_t stuck_ms = 0;
  for (std::size_t i = 0; i < sizeof stuck_ms; ++i) {
    stuck_ms |= static_cast<std::uint32_t>(opened->payload[i]) << (8 * i);
  }
  return Heartbeat{peer, 1e-3 * stuck_ms};
}

}  // namespace tessera::engine
