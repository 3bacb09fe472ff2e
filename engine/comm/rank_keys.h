// Keys that each two ranks of a run share and nobody else has, made anew for each run (X25519).
//
// Public keys travel by MPI. Whoever only listens learns no key; whoever can change what MPI sends
// can put keys of their own there: MPI itself has nothing that would show it.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/sealed_datagram.h"

namespace tessera::engine {

using PublicKey = std::array<std::uint8_t, 32>;

// What a rank keeps for itself until it has its keys with the others.
class RankKeyPair {
 public:
  // From the system's random numbers. Where there are none the public key is all zeros, with which
  // nobody can share a key.
  explicit RankKeyPair(int rank);
  ~RankKeyPair();  // overwrites the secret
  RankKeyPair(const RankKeyPair&) = delete;
  RankKeyPair& operator=(const RankKeyPair&) = delete;

  [[nodiscard]] const PublicKey& public_key() const { return public_key_; }

  // The key that both ranks compute, each from its own secret and the other's public key. None for
  // a public key with which the secret would be known to all, such as zeros, and with itself.
  [[nodiscard]] std::optional<DatagramKey> shared_with(int peer, const PublicKey& theirs) const;

 private:
  int rank_;
  PublicKey public_key_{};
  std::array<std::uint8_t, 32> secret_{};
  bool made_ = false;
};

// Keys of this rank with each other one, by rank; none with itself and with ranks that do not take
// part. Other purposes, other keys. All ranks call this together.
[[nodiscard]] std::vector<std::optional<DatagramKey>> keys_with_ranks(
    const Communicator& communicator, std::string_view purpose);

}  // namespace tessera::engine
