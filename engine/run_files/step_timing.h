// timing.jsonl: now and then, where the seconds of a mean step of each rank went.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/run_files/unknown.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// The seconds of a mean step of a rank: the others add up to step_s, but for some microseconds.
struct StepShares {
  double step_s = 0;
  double loading_s = 0;     // waiting for pictures
  double forward_s = 0;     // computing
  double backward_s = 0;    // computing
  double update_s = 0;      // computing
  double exchanging_s = 0;  // packing, sending, unpacking
  double waiting_s = 0;     // for messages

  [[nodiscard]] double computing_s() const { return forward_s + backward_s + update_s; }
};
inline constexpr double StepShares::*kStepShares[] = {&StepShares::step_s,
                                                      &StepShares::loading_s,
                                                      &StepShares::forward_s,
                                                      &StepShares::backward_s,
                                                      &StepShares::update_s,
                                                      &StepShares::exchanging_s,
                                                      &StepShares::waiting_s};

// A line.
struct StepTiming : StepShares {
  StepTiming() : StepTiming(StepShares()) {
    for (const auto share : kStepShares) {
      this->*share = kUnknown;
    }
  }
  explicit StepTiming(const StepShares& shares) : StepShares(shares) {}

  double t_s = kUnknown;
  Index step = 0;   // the last of those
  Index steps = 0;  // how many the mean is of
  int rank = 0;
  bool predicted = false;
};

// Without its end.
[[nodiscard]] std::string line_of(const StepTiming& timing);

// Nothing where it is no line of such a file.
[[nodiscard]] std::optional<StepTiming> step_timing(const nlohmann::ordered_json& line);

}  // namespace tessera::engine
