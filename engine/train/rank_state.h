// What each rank goes on from beside what all have in common: what independent replicas differ in,
// and what compression has left of gradients. It means something under the very same plan alone.

#pragma once

#include <span>
#include <string>
#include <vector>

namespace tessera::engine {

struct RankState {
  std::string layout;                    // of which plan; empty: there is nothing
  std::vector<std::span<float>> arrays;  // of this rank
};

}  // namespace tessera::engine
