#include "engine/run_log/step_timing.h"

#include <algorithm>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr double kPeriod_s = 10;
constexpr Index kMostPeriod = 10'000;  // steps

// Waiting is a part of exchanging where the clock of exchanges runs, which it does nearly always.
StepShares shares_of(const StepTimes& times) {
  StepShares shares;
  shares.step_s = times.step_s;
  shares.loading_s = times.load_s;
  shares.forward_s = times.forward_s - times.forward_exchange_s;
  shares.backward_s = times.backward_s - times.backward_exchange_s;
  shares.update_s = times.update_s - times.update_exchange_s;
  const double exchange_s =
      times.forward_exchange_s + times.backward_exchange_s + times.update_exchange_s;
  shares.waiting_s = std::min(times.waiting_s, exchange_s);
  shares.exchanging_s = exchange_s - shares.waiting_s;
  return shares;
}

}  // namespace

StepTimingFile::StepTimingFile(const std::optional<std::filesystem::path>& path,
                               Index resumed_step,
                               const std::vector<StepShares>& predicted,
                               const RunClock& clock,
                               const Communicator& communicator)
    : clock_(&clock), communicator_(&communicator), step_(resumed_step) {
  if (path) {
    lines_.emplace(*path, resumed_step);
    steps_ = 1;  // a prediction is of one
    for (std::size_t rank = 0; rank < predicted.size(); ++rank) {
      write(static_cast<int>(rank), predicted[rank], true);
    }
    steps_ = 0;
  }
}

void StepTimingFile::add(Index step, const StepTimes& times) {
  const StepShares shares = shares_of(times);
  for (const auto share : kStepShares) {
    sum_.*share += shares.*share;
  }
  step_ = step;
  if (++steps_ >= period_steps_) {
    flush();
  }
}

void StepTimingFile::flush() {
  if (steps_ == 0) {
    return;
  }
  const std::vector<StepShares> per_rank = communicator_->of_ranks(sum_);
  const double step_s = per_rank[0].step_s / static_cast<double>(steps_);
  for (std::size_t rank = 0; lines_ && rank < per_rank.size(); ++rank) {
    StepShares mean;
    for (const auto share : kStepShares) {
      mean.*share = per_rank[rank].*share / static_cast<double>(steps_);
    }
    write(static_cast<int>(rank), mean, false);
  }
  period_steps_ = static_cast<Index>(
      std::clamp(kPeriod_s / std::max(step_s, 1e-9), 1.0, static_cast<double>(kMostPeriod)));
  sum_ = {};
  steps_ = 0;
}

void StepTimingFile::write(int rank, const StepShares& shares, bool predicted) {
  StepTiming timing(shares);
  timing.t_s = clock_->t_s();
  timing.step = step_;
  timing.steps = steps_;
  timing.rank = rank;
  timing.predicted = predicted;
  try {
    lines_->add_line(line_of(timing));
  } catch (const InputError&) {  // the metrics cannot be written either, and say so
  }
}

}  // namespace tessera::engine
