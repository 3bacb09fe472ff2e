// Whether a supervisor may go on with the devices that it reaches, so that two parts of a network
// that has come apart do not both train. A decision alone, without the devices.

#pragma once

#include <vector>

namespace tessera::engine {

enum class Quorum {
  Enough,  // more than half of the devices that the last finished step had
  Half,    // exactly half: enough on a device that is connected itself and reaches the witness
  TooFew
};

// `last_step` has the devices of the last finished step; empty: no step is finished, and any will
// do. Others that are reached do not count, since they have no part of the state.
[[nodiscard]] Quorum quorum_of(const std::vector<int>& last_step, const std::vector<int>& reached);

}  // namespace tessera::engine
