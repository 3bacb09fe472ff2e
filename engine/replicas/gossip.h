// After each step replicas average their parameters with one other, in random pairs: no rank has
// more to carry than the others, and none has all (gossip averaging: Boyd et al. 2006, Blot et al.
// 2016). With an odd number of replicas one of them keeps its own.

#pragma once

#include <cstdint>

#include "engine/replicas/synchroniser.h"

namespace tessera::engine {

// The replica that `replica` averages with after a step, or itself: the same pairs on all ranks, by
// the seed.
[[nodiscard]] int gossip_partner(std::uint64_t seed, Index step, int replicas, int replica);

class Gossip final : public Synchroniser {
 public:
  Gossip(ReplicaModel model, std::uint64_t seed);

  void begin(Index steps_done, bool restored) override;
  void update(int bucket, Index step, const std::function<void()>& update) override;
  [[nodiscard]] Index bytes() const override;

 private:
  std::uint64_t seed_;
  Array<float> theirs_;
};

}  // namespace tessera::engine
