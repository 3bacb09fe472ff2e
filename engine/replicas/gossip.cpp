#include "engine/replicas/gossip.h"

#include <numeric>
#include <utility>

#include "engine/base/random.h"

namespace tessera::engine {

int gossip_partner(std::uint64_t seed, Index step, int replicas, int replica) {
  constexpr std::uint64_t kPairs = 0x90551b;  // a place in the order of draws that nothing else has
  std::vector<int> order(static_cast<std::size_t>(replicas));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {  // Fisher and Yates
    const std::uint64_t drawn = random_bits(seed, kPairs, static_cast<std::uint64_t>(step), i);
    std::swap(order[i - 1], order[static_cast<std::size_t>(drawn % i)]);
  }
  for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
    if (order[i] == replica) {
      return order[i + 1];
    }
    if (order[i + 1] == replica) {
      return order[i];
    }
  }
  return replica;
}

Gossip::Gossip(ReplicaModel model, std::uint64_t seed)
    : Synchroniser(std::move(model)), seed_(seed), theirs_(elements().largest_bucket()) {}

void Gossip::begin(Index /*steps_done*/, bool /*restored*/) {}

void Gossip::update(int bucket, Index step, const std::function<void()>& update) {
  update();
  const ExchangeTimer timer(communicator(), &ExchangeTimes::reduction_s);
  const int partner = gossip_partner(seed_, step, peers().size(), peers().index());
  if (partner == peers().index()) {
    return;
  }
  const std::span<float> mine = scratch(bucket);
  const std::span<float> theirs = theirs_.span().first(mine.size());
  elements().copy_values(bucket, mine);
  peers().exchange(partner, std::as_bytes(mine), std::as_writable_bytes(theirs));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = (mine[i] + theirs[i]) / 2;
  }
  elements().assign_values(bucket, mine);
}

Index Gossip::bytes() const {
  return Synchroniser::bytes() + theirs_.bytes();
}

}  // namespace tessera::engine
