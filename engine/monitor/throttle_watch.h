// When a board begins to be slowed down by its firmware, and when that is over: a sentence each.

#pragma once

#include <optional>
#include <string>

#include "engine/run_files/device_sample.h"

namespace tessera::engine {

class ThrottleWatch {
 public:
  // A sample of the board; each is later than the one before. Returns what is to be told: that one
  // or more of the flags of now (bits 0 to 3, see BoardSensors::throttled()) are new, or that there
  // have been none for ten seconds, so that flags that flicker are told once. Samples without flags
  // change nothing.
  [[nodiscard]] std::optional<std::string> look(const DeviceSample& sample);

 private:
  unsigned told_ = 0;  // flags that are told and not over
  double last_s_ = 0;  // that there was one
  double began_s_ = 0;
};

}  // namespace tessera::engine
