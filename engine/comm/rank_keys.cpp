#include "engine/comm/rank_keys.h"

#include <sodium.h>
#include <tuple>

namespace tessera::engine {

static_assert(std::tuple_size_v<PublicKey> == crypto_box_PUBLICKEYBYTES);
static_assert(crypto_box_SECRETKEYBYTES == crypto_scalarmult_SCALARBYTES);
static_assert(crypto_box_PUBLICKEYBYTES == crypto_scalarmult_BYTES);

RankKeyPair::RankKeyPair(int rank) : rank_(rank) {
  static_assert(crypto_box_SECRETKEYBYTES == std::tuple_size_v<decltype(secret_)>);
  made_ = sodium_init() >= 0 && crypto_box_keypair(public_key_.data(), secret_.data()) == 0;
}

RankKeyPair::~RankKeyPair() {
  sodium_memzero(secret_.data(), secret_.size());
}

std::optional<DatagramKey> RankKeyPair::shared_with(int peer, const PublicKey& theirs) const {
  std::array<std::uint8_t, crypto_scalarmult_BYTES> point{};
  if (!made_ || peer == rank_ ||
      crypto_scalarmult(point.data(), secret_.data(), theirs.data()) != 0) {
    return std::nullopt;
  }
  // The point alone is not evenly distributed, and does not say whose it is.
  const PublicKey& lower = rank_ < peer ? public_key_ : theirs;
  const PublicKey& higher = rank_ < peer ? theirs : public_key_;
  std::array<std::uint8_t, DatagramKey::kBytes> bytes{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, bytes.size());
  crypto_generichash_update(&state, point.data(), point.size());
  crypto_generichash_update(&state, lower.data(), lower.size());
  crypto_generichash_update(&state, higher.data(), higher.size());
  crypto_generichash_final(&state, bytes.data(), bytes.size());
  const DatagramKey key = DatagramKey::from_bytes(bytes);
  sodium_memzero(&state, sizeof state);
  sodium_memzero(point.data(), point.size());
  sodium_memzero(bytes.data(), bytes.size());
  return key;
}

std::vector<std::optional<DatagramKey>> keys_with_ranks(const Communicator& communicator,
                                                        std::string_view purpose) {
  const RankKeyPair mine(communicator.rank());
  const std::vector<PublicKey> publics = communicator.of_ranks(mine.public_key());
  std::vector<std::optional<DatagramKey>> keys;
  for (std::size_t peer = 0; peer < publics.size(); ++peer) {
    const auto key = mine.shared_with(static_cast<int>(peer), publics[peer]);
    keys.push_back(key ? std::optional(key->derived(purpose)) : std::nullopt);
  }
  return keys;
}

}  // namespace tessera::engine
