// How many samples may be where, and move, if moving and an epoch take no longer than given times.

#pragma once

#include "partitioner/balance/balance.h"

namespace tessera::partitioner {

struct BalanceTimes {
  double move_s = 0;
  double epoch_s = 0;
};

class MoveLimits {
 public:
  explicit MoveLimits(const BalanceProblem& problem)
      : problem_(problem), samples_(problem.samples()) {}

  [[nodiscard]] Index on(std::size_t device, double epoch_s) const;
  [[nodiscard]] Index out_of(std::size_t device, double move_s) const;
  [[nodiscard]] Index into(std::size_t device, double move_s) const;
  [[nodiscard]] Index between(std::size_t from, std::size_t to, double move_s) const;

  // The epoch times at which one of the devices can hold a further sample: the next above a time,
  // and the next below, or the time itself where `or_equal`.
  [[nodiscard]] double next_epoch_s(double epoch_s) const;
  [[nodiscard]] double previous_epoch_s(double epoch_s, bool or_equal) const;

 private:
  [[nodiscard]] Index whole(double samples) const;

  const BalanceProblem& problem_;
  Index samples_;
};

}  // namespace tessera::partitioner
