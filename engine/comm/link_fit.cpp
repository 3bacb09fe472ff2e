#include "engine/comm/link_fit.h"

#include "partitioner/errors.h"

namespace engine {

namespace {

// Sums over transfers, each weighted by 1 / seconds.
struct WeightedSums {
  double ones = 0;
  double bytes = 0;
  double bytes_bytes = 0;
  double seconds = 0;
  double bytes_seconds = 0;
};

WeightedSums sums_of(const std::vector<TimedTransfer>& transfers) {
  WeightedSums sums;
  for (const TimedTransfer& transfer : transfers) {
    const double weight = 1 / transfer.seconds;
    sums.ones += weight;
    sums.bytes += weight * transfer.bytes;
    sums.bytes_bytes += weight * transfer.bytes * transfer.bytes;
    sums.seconds += weight * transfer.seconds;
    sums.bytes_seconds += weight * transfer.bytes * transfer.seconds;
  }
  return sums;
}

}  // namespace

partitioner::LinkProfile fit_link(const std::vector<TimedTransfer>& transfers) {
  const WeightedSums sums = sums_of(transfers);
  partitioner::expects(sums.bytes_seconds > 0, "a rate is fitted to transfers of some bytes");
  const double spread = sums.ones * sums.bytes_bytes - sums.bytes * sums.bytes;
  const double slope = sums.ones * sums.bytes_seconds - sums.bytes * sums.seconds;
  const double start = sums.bytes_bytes * sums.seconds - sums.bytes * sums.bytes_seconds;
  constexpr double kLeastSpread = 1e-9;  // of sizes: with less, rounding would be what is fitted
  if (spread <= kLeastSpread * sums.ones * sums.bytes_bytes || slope <= 0 || start < 0) {
    return {0, sums.bytes_bytes / sums.bytes_seconds};
  }
  return {start / spread, spread / slope};
}

}  // namespace engine
