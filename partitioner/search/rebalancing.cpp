#include "partitioner/search/rebalancing.h"

#include <algorithm>
#include <cmath>

#include "partitioner/base/errors.h"
#include "partitioner/cost/step_prices.h"

namespace tessera::partitioner {

namespace {

void slow_down(PassRates& rates, double slowness) {
  rates.forward_bytes_per_s /= slowness;
  rates.backward_bytes_per_s /= slowness;
}

void slow_down(DeviceProfile& device, double slowness) {
  expects(slowness > 0, "a device computes in some time");
  device.memory_bytes_per_s /= slowness;
  device.direct_flops_per_s /= slowness;
  device.winograd_flops_per_s /= slowness;
  device.updated_weights_per_s /= slowness;
  for (PassRates* rates :
       {&device.normalize, &device.activate, &device.pool, &device.elementwise}) {
    slow_down(*rates, slowness);
  }
  for (ConvolutionPoint& point : device.convolutions) {
    point.forward_s *= slowness;
    point.backward_data_s *= slowness;
    point.backward_weights_s *= slowness;
  }
}

}  // namespace

ClusterProfile slowed(ClusterProfile cluster, const std::vector<double>& slowness) {
  expects(slowness.size() == cluster.devices.size(), "a slowness for each device");
  for (std::size_t i = 0; i < slowness.size(); ++i) {
    slow_down(cluster.devices[i], slowness[i]);
  }
  return cluster;
}

std::vector<double> computing_seconds(const Network& network,
                                      const Plan& plan,
                                      const ClusterProfile& cluster,
                                      const CostOptions& options) {
  std::vector<double> sums(static_cast<std::size_t>(plan.ranks));
  for (const PricedAction& priced : priced_step(network, plan, cluster, options).actions) {
    if (priced.action.kind == Action::Kind::Compute) {
      for (std::size_t rank = 0; rank < sums.size(); ++rank) {
        sums[rank] += priced.seconds[rank];
      }
    }
  }
  return sums;
}

SlownessWatch::SlownessWatch(int devices, const RebalancingOptions& options)
    : options_(options), settled_(static_cast<std::size_t>(devices), 1.0), latest_(settled_) {}

std::optional<std::vector<double>> SlownessWatch::add_window(
    const std::vector<double>& measured_s, const std::vector<double>& predicted_s) {
  expects(measured_s.size() == latest_.size() && predicted_s.size() == latest_.size(),
          "a number for each device");
  for (std::size_t i = 0; i < latest_.size(); ++i) {
    if (measured_s[i] > 0 && predicted_s[i] > 0) {
      latest_[i] = measured_s[i] / predicted_s[i];
    }
  }
  if (!differ(latest_, settled_)) {
    other_.reset();
    return std::nullopt;
  }
  if (!other_ || differ(latest_, *other_)) {
    other_ = latest_;
    return std::nullopt;
  }
  std::vector<double> mean(latest_.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    mean[i] = std::sqrt(latest_[i] * (*other_)[i]);
  }
  other_.reset();
  return mean;
}

void SlownessWatch::settle(const std::vector<double>& slowness) {
  expects(slowness.size() == settled_.size(), "a slowness for each device");
  settled_ = slowness;
  other_.reset();
}

void SlownessWatch::note_search(double begun_s, double ended_s) {
  next_search_s_ = ended_s + (ended_s - begun_s) * (1 / options_.searching - 1);
}

bool SlownessWatch::is_worth_while(double now_s,
                                   double then_s,
                                   Index steps_left,
                                   double change_s) const {
  const double saved_s = now_s - then_s;
  return saved_s >= options_.least_saved * now_s &&
         saved_s * static_cast<double>(steps_left) > change_s;
}

bool SlownessWatch::differ(const std::vector<double>& a, const std::vector<double>& b) const {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::max(a[i] / b[i], b[i] / a[i]) > 1 + options_.noticed) {
      return true;
    }
  }
  return false;
}

}  // namespace tessera::partitioner
