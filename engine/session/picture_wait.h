// How much of a run's time waits for pictures, and what to do about it.

#pragma once

#include <optional>
#include <string>

#include "engine/session/picture_caching.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

class PictureWait {
 public:
  // Adds a step of a run that sees pictures so many times. A sentence for people, once, where
  // pictures take most of the time and keeping them decoded would help.
  [[nodiscard]] std::optional<std::string> add(const StepTimes& times,
                                               double epochs,
                                               const PictureCaching& caching);

 private:
  double waiting_s_ = 0;
  double step_s_ = 0;
  Index steps_ = 0;
  bool said_ = false;
};

}  // namespace tessera::engine
