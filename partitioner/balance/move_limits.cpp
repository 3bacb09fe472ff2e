#include "partitioner/balance/move_limits.h"

#include <algorithm>
#include <cmath>

namespace tessera::partitioner {

namespace {

// Of a number of samples: a time that was computed from a whole number gives that number again.
constexpr double kRounding = 1e-9;

double rounded_down(double samples) {
  return std::floor(samples * (1 + kRounding) + kRounding);
}

}  // namespace

// Never more than there are: no sum of limits overflows, and a rate may be infinite.
Index MoveLimits::whole(double samples) const {
  return samples >= static_cast<double>(samples_)
             ? samples_
             : static_cast<Index>(std::max(0.0, rounded_down(samples)));
}

Index MoveLimits::on(std::size_t device, double epoch_s) const {
  const BalanceDevice& of = problem_.devices[device];
  return std::min(of.capacity, whole(epoch_s / of.seconds_per_sample));
}

Index MoveLimits::out_of(std::size_t device, double move_s) const {
  const BalanceDevice& of = problem_.devices[device];
  return move_s > 0 ? whole(move_s * of.send_bytes_per_s / problem_.sample_bytes) : 0;
}

Index MoveLimits::into(std::size_t device, double move_s) const {
  const BalanceDevice& of = problem_.devices[device];
  return move_s > 0 ? whole(move_s * of.receive_bytes_per_s / problem_.sample_bytes) : 0;
}

Index MoveLimits::between(std::size_t from, std::size_t to, double move_s) const {
  const LinkProfile& link = problem_.link(from, to);
  const double left_s = move_s - link.latency_s;
  return from != to && left_s > 0 ? whole(left_s * link.bytes_per_s / problem_.sample_bytes) : 0;
}

double MoveLimits::next_epoch_s(double epoch_s) const {
  double next = kInfiniteRate;
  for (const BalanceDevice& device : problem_.devices) {
    const double samples = rounded_down(epoch_s / device.seconds_per_sample) + 1;
    next = std::min(next, samples * device.seconds_per_sample);
  }
  return next;
}

double MoveLimits::previous_epoch_s(double epoch_s, bool or_equal) const {
  double previous = 0;
  for (const BalanceDevice& device : problem_.devices) {
    const double samples = epoch_s / device.seconds_per_sample;
    double below = rounded_down(samples);
    if (!or_equal && below >= samples * (1 - kRounding) - kRounding) {
      below -= 1;
    }
    previous = std::max(previous, below * device.seconds_per_sample);
  }
  return previous;
}

}  // namespace tessera::partitioner
