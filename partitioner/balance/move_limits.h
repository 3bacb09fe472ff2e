// How many shards may be where, and move, if moving and an epoch take no longer than given times. A
// shard is as many samples as move together (BalanceProblem::shard); what a device has beyond whole
// shards stays there and is not counted.

#pragma once

#include "partitioner/balance/balance.h"

namespace tessera::partitioner {

struct BalanceTimes {
  double move_s = 0;
  double epoch_s = 0;
};

class MoveLimits {
 public:
  explicit MoveLimits(const BalanceProblem& problem);

  [[nodiscard]] Index before(std::size_t device) const {
    return problem_.devices[device].samples / problem_.shard;
  }
  [[nodiscard]] Index all() const { return shards_; }

  // On a device after moving; negative where it has too much that stays.
  [[nodiscard]] Index on(std::size_t device, double epoch_s) const;
  [[nodiscard]] Index out_of(std::size_t device, double move_s) const;
  [[nodiscard]] Index into(std::size_t device, double move_s) const;
  [[nodiscard]] Index between(std::size_t from, std::size_t to, double move_s) const;

  // Whether all devices are done in time with what stays on them.
  [[nodiscard]] bool is_enough(double epoch_s) const;

  // The epoch times at which one of the devices can hold a further shard: the next above a time,
  // and the next below, or the time itself where `or_equal`.
  [[nodiscard]] double next_epoch_s(double epoch_s) const;
  [[nodiscard]] double previous_epoch_s(double epoch_s, bool or_equal) const;

 private:
  // Never more than there are: no sum of limits overflows, and a rate may be infinite.
  [[nodiscard]] Index whole(double shards) const;
  [[nodiscard]] double shard_bytes() const {
    return problem_.sample_bytes * static_cast<double>(problem_.shard);
  }
  [[nodiscard]] Index staying(std::size_t device) const {
    return problem_.devices[device].samples % problem_.shard;
  }
  // How many a device holds if it has `samples` at most.
  [[nodiscard]] double shards_of(std::size_t device, double samples) const;
  // Seconds that a device takes with so many.
  [[nodiscard]] double seconds(std::size_t device, double shards) const;

  const BalanceProblem& problem_;
  Index shards_ = 0;  // of all devices
};

}  // namespace tessera::partitioner
