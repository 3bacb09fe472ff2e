#include "engine/session/picture_wait.h"

#include <fmt/format.h>

#include "partitioner/base/quantities.h"

namespace tessera::engine {

std::optional<std::string> PictureWait::add(const StepTimes& times,
                                            double epochs,
                                            const PictureCaching& caching) {
  constexpr Index kSteps = 5;  // the first one is often slow for other reasons
  constexpr double kMuch = 0.5;
  waiting_s_ += times.load_s;
  step_s_ += times.step_s;
  ++steps_;
  if (said_ || caching.is_on() || !caching.is_of_use() || epochs <= 1 || steps_ < kSteps ||
      waiting_s_ < kMuch * step_s_) {
    return std::nullopt;
  }
  said_ = true;
  return fmt::format(
      "{:.0f} % of the time goes into waiting for pictures, which are decoded in every epoch: "
      "--cache memory decodes them once and takes {} on each machine, --cache FOLDER keeps them "
      "in files",
      100 * waiting_s_ / step_s_,
      readable_bytes(caching.content_bytes()));
}

}  // namespace tessera::engine
