#include "partitioner/balance/move_limits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::partitioner {

namespace {

// Tolerance of a number of samples, relative and absolute: a time that was computed from a whole
// number gives that number again, and of many samples none more.
constexpr double kLimitRounding = 8 * std::numeric_limits<double>::epsilon();
constexpr double kLittle = 1e-9;

double rounded_down(double samples) {
  return std::floor(samples * (1 + kLimitRounding) + kLittle);
}

}  // namespace

MoveLimits::MoveLimits(const BalanceProblem& problem) : problem_(problem) {
  for (std::size_t i = 0; i < problem.size(); ++i) {
    shards_ += before(i);
  }
}

Index MoveLimits::whole(double shards) const {
  return shards >= static_cast<double>(shards_)
             ? shards_
             : static_cast<Index>(std::max(0.0, rounded_down(shards)));
}

double MoveLimits::shards_of(std::size_t device, double samples) const {
  return std::floor((samples - static_cast<double>(staying(device))) /
                    static_cast<double>(problem_.shard));
}

double MoveLimits::seconds(std::size_t device, double shards) const {
  const double samples =
      static_cast<double>(staying(device)) + shards * static_cast<double>(problem_.shard);
  return samples * problem_.devices[device].seconds_per_sample;
}

Index MoveLimits::on(std::size_t device, double epoch_s) const {
  const BalanceDevice& profile = problem_.devices[device];
  const double samples = std::min(static_cast<double>(profile.capacity),
                                  rounded_down(epoch_s / profile.seconds_per_sample));
  const double shards = shards_of(device, samples);
  return shards < 0                               ? -1
         : shards >= static_cast<double>(shards_) ? shards_
                                                  : static_cast<Index>(shards);
}

bool MoveLimits::is_enough(double epoch_s) const {
  for (std::size_t i = 0; i < problem_.size(); ++i) {
    if (on(i, epoch_s) < 0) {
      return false;
    }
  }
  return true;
}

Index MoveLimits::out_of(std::size_t device, double move_s) const {
  const BalanceDevice& profile = problem_.devices[device];
  return move_s > 0 ? whole(move_s * profile.send_bytes_per_s / shard_bytes()) : 0;
}

Index MoveLimits::into(std::size_t device, double move_s) const {
  const BalanceDevice& profile = problem_.devices[device];
  return move_s > 0 ? whole(move_s * profile.receive_bytes_per_s / shard_bytes()) : 0;
}

Index MoveLimits::between(std::size_t from, std::size_t to, double move_s) const {
  const LinkProfile& link = problem_.link(from, to);
  const double left_s = move_s - link.latency_s;
  return from != to && left_s > 0 ? whole(left_s * link.bytes_per_s / shard_bytes()) : 0;
}

double MoveLimits::next_epoch_s(double epoch_s) const {
  double next = kInfiniteRate;
  for (std::size_t i = 0; i < problem_.size(); ++i) {
    const double samples = rounded_down(epoch_s / problem_.devices[i].seconds_per_sample);
    next = std::min(next, seconds(i, std::max(shards_of(i, samples) + 1, 0.0)));
  }
  return next;
}

double MoveLimits::previous_epoch_s(double epoch_s, bool or_equal) const {
  double previous = 0;
  for (std::size_t i = 0; i < problem_.size(); ++i) {
    const double samples = epoch_s / problem_.devices[i].seconds_per_sample;
    const double held = rounded_down(samples);
    double shards = shards_of(i, held);
    const bool equal =
        static_cast<double>(staying(i)) + shards * static_cast<double>(problem_.shard) >=
        samples * (1 - kLimitRounding) - kLittle;
    if (!or_equal && equal) {
      shards -= 1;
    }
    if (shards >= 0) {
      previous = std::max(previous, seconds(i, shards));
    }
  }
  return previous;
}

}  // namespace tessera::partitioner
