#include "engine/supervisor/quorum.h"

#include <algorithm>

namespace tessera::engine {

Quorum quorum_of(const std::vector<int>& last_step, const std::vector<int>& reached) {
  const auto all = static_cast<std::ptrdiff_t>(last_step.size());
  const auto here = std::count_if(last_step.begin(), last_step.end(), [&](int device) {
    return std::find(reached.begin(), reached.end(), device) != reached.end();
  });
  if (all == 0 || 2 * here > all) {
    return Quorum::Enough;
  }
  return 2 * here == all ? Quorum::Half : Quorum::TooFew;
}

}  // namespace tessera::engine
