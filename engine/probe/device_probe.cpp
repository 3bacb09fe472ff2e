#include "engine/probe/device_probe.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <thread>
#include <utility>

#include "engine/ops/activation/activation.h"
#include "engine/ops/loops/threads.h"
#include "engine/ops/norm/batch_norm.h"
#include "engine/ops/pool/pool.h"
#include "engine/ops/rearrange/rearrange.h"
#include "engine/probe/convolution_trial.h"
#include "engine/probe/repeated_timing.h"

namespace tessera::engine {

namespace {

using partitioner::ConvolutionPass;
using partitioner::DeviceProfile;
using partitioner::PassRates;

constexpr Region kMap{{0, 1}, {0, 64}, {0, 104}, {0, 104}};  // 2.6 MiB

// How long this thread stood still at the most while it wanted to run, as far as a look at it
// shows.
double longest_standstill_s() {
  constexpr double kLookSeconds = 0.25;
  const double end = now_s() + kLookSeconds;
  double longest = 0;
  for (double last = now_s(); last < end;) {
    const double now = now_s();
    longest = std::max(longest, now - last);
    last = now;
  }
  return longest;
}

// Where a device gets a share of a processor, it may stand still for longer than a sample takes, so
// that one may lie between two such times, or have one too many. There a thread that computes alone
// is timed by what it takes of the processor, which share_out() turns into seconds that pass. Of
// several threads one may wait for the others.
class TrialTimer {
 public:
  [[nodiscard]] bool counts_processor_time() const { return counts_processor_time_; }

  // Times a piece of work that is done again and again for about `allowed_s`.
  template <class Work>
  [[nodiscard]] double seconds(double allowed_s, Work work) const {
    return median_seconds(allowed_s, work, counts_processor_time_ ? processor_s : now_s);
  }

 private:
  bool counts_processor_time_ = threads() == 1 && longest_standstill_s() > kSampleSeconds / 4;
};

// How much of a processor this thread has had since this was made, at most 1.
class ProcessorShare {
 public:
  [[nodiscard]] double so_far() const {
    return std::min(1.0, (processor_s() - processor_start_) / (now_s() - start_));
  }

 private:
  double start_ = now_s();
  double processor_start_ = processor_s();
};

// Corrects rates of a thread that got `share` of a processor while it was timed.
void share_out(double share, DeviceProfile& profile) {
  for (double* rate : {&profile.memory_bytes_per_s,
                       &profile.copied_bytes_per_s,
                       &profile.direct_flops_per_s,
                       &profile.winograd_flops_per_s}) {
    *rate *= share;
  }
  for (PassRates DeviceProfile::*rates : partitioner::kPassRates) {
    (profile.*rates).forward_bytes_per_s *= share;
    (profile.*rates).backward_bytes_per_s *= share;
  }
  for (ConvolutionPoint& point : profile.convolutions) {
    point.forward_s /= share;
    point.backward_data_s /= share;
    point.backward_weights_s /= share;
  }
}

double bytes_of_maps(double maps) {
  return maps * static_cast<double>(sizeof(float)) * static_cast<double>(kMap.volume());
}

// Fills in the times of a trial.
ConvolutionPoint timed(const TrialTimer& timer,
                       ConvolutionPoint trial,
                       double allowed_s,
                       ProbeMaps& maps) {
  ConvolutionTrial work(trial, maps);
  const double pass_s = allowed_s / 3;
  trial.forward_s = timer.seconds(pass_s, [&] { work.forward(); });
  trial.backward_data_s = timer.seconds(pass_s, [&] { work.backward_data(); });
  trial.backward_weights_s = timer.seconds(pass_s, [&] { work.backward_weights(); });
  return trial;
}

// Over all points of kernels that are, or are not, Winograd's.
double flops_per_s(const std::vector<ConvolutionPoint>& points, bool winograd) {
  double flops = 0;
  double seconds = 0;
  for (const ConvolutionPoint& point : points) {
    if ((partitioner::winograd_side(point.kernel) > 0) == winograd) {
      flops += trial_flops(point);
      seconds += point.forward_s + point.backward_data_s + point.backward_weights_s;
    }
  }
  return flops / seconds;
}

// Common trials first: what can be expected of the others comes from them.
void measure_convolutions(const DeviceProbeOptions& options,
                          const TrialTimer& timer,
                          double seconds,
                          const ProcessorShare& share,
                          ProbeMaps& maps,
                          DeviceMeasurements& measurements) {
  const double end = now_s() + seconds;
  std::vector<ConvolutionPoint>& points = measurements.profile.convolutions;
  for (const ConvolutionPoint& trial : common_trials()) {
    constexpr double kPart = 0.05;
    points.push_back(timed(timer, trial, kPart * seconds, maps));
  }
  const double direct_flops_per_s = flops_per_s(points, false);
  const double winograd_flops_per_s = flops_per_s(points, true);
  measurements.profile.direct_flops_per_s = direct_flops_per_s;
  measurements.profile.winograd_flops_per_s = winograd_flops_per_s;
  std::vector<ConvolutionPoint> wanted = options.trials;
  for (const ConvolutionPoint& trial : common_trials()) {
    std::erase(wanted, trial);
  }
  constexpr double kSafety = 0.8;  // other shapes may be slower
  const double computing_s =
      kSafety * (end - now_s()) * (timer.counts_processor_time() ? share.so_far() : 1);
  const TrialChoice choice = choose_trials(
      wanted, {computing_s, options.memory_bytes, direct_flops_per_s, winograd_flops_per_s});
  measurements.left_out = choice.left_out;
  double flops_left = 0;
  for (const ConvolutionPoint& trial : choice.chosen) {
    flops_left += trial_flops(trial);
  }
  auto left = static_cast<double>(choice.chosen.size());
  for (const ConvolutionPoint& trial : choice.chosen) {
    // Half of the time goes to all alike, half by what they compute.
    const double flops = trial_flops(trial);
    const double left_s = end - now_s();
    if (left_s > 0) {
      points.push_back(timed(timer, trial, left_s / 2 * (1 / left + flops / flops_left), maps));
    } else {
      measurements.left_out.push_back(trial);
    }
    flops_left -= flops;
    left -= 1;
  }
}

// With statistics, taken of lines that have just been made: what batch normalisation does on a
// device of its own.
PassRates normalize_rates(const TrialTimer& timer, double allowed_s, ProbeMaps& maps) {
  const auto channels = static_cast<std::size_t>(kMap.channels.size());
  const std::vector<ChannelNorm<float>> norms(channels);
  const std::vector<float> scale(channels, 1);
  const std::vector<float> shift(channels, 0);
  const Normalization<float> by{
      0, norms, scale.data(), shift.data(), partitioner::Activation::Leaky};
  Region lines = kMap;
  lines.rows.end = 1;  // 26 KiB
  const View<const float> fresh = maps.in.next(kMap);
  const double moments_s =
      timer.seconds(allowed_s / 4, [&] { (void)channel_moments(fresh, lines); });
  const double forward_s =
      moments_s * static_cast<double>(kMap.rows.size()) + timer.seconds(allowed_s / 4, [&] {
        normalize_forward(View<const float>(maps.in.next(kMap)), kMap, by, maps.out.next(kMap));
      });
  const auto count = static_cast<double>(kMap.rows.size() * kMap.cols.size());
  const double backward_s = timer.seconds(allowed_s / 2, [&] {
    const View<float> pre_activations = maps.out.next(kMap);
    const GradientLines<float> gradient{View<const float>(maps.gradient.next(kMap))};
    const auto totals =
        normalize_backward_statistics(View<const float>(pre_activations), kMap, by, gradient);
    normalize_backward(pre_activations, kMap, by, {totals, count, kMap}, gradient);
  });
  return {bytes_of_maps(1) / forward_s, bytes_of_maps(1) / backward_s};
}

// Small numbers are slow: slopes should be about 1, since gradients take them again and again.
double activate_backward_seconds(const TrialTimer& timer,
                                 double allowed_s,
                                 partitioner::Activation activation,
                                 ProbeMaps& maps) {
  return timer.seconds(allowed_s, [&] {
    const View<const float> values = maps.out.next(kMap);
    (void)activate_backward(activation, values, values, kMap, maps.gradient.next(kMap));
  });
}

PassRates activate_rates(const TrialTimer& timer, double allowed_s, ProbeMaps& maps) {
  constexpr auto kActivation = partitioner::Activation::Leaky;
  const double forward_s = timer.seconds(allowed_s / 2, [&] {
    const View<float> map = maps.out.next(kMap);
    activate_forward(kActivation, View<const float>(map), kMap, map);
  });
  const double backward_s = activate_backward_seconds(timer, allowed_s / 2, kActivation, maps);
  return {bytes_of_maps(1) / forward_s, bytes_of_maps(1) / backward_s};
}

// What an activation with an exponential takes beyond another one.
PassRates exponential_rates(const TrialTimer& timer, double allowed_s, ProbeMaps& maps) {
  constexpr float kSlopeIsOne = 1.2784645F;  // of x * logistic(x)
  std::fill(maps.out.all().begin(), maps.out.all().end(), kSlopeIsOne);
  const auto beyond_rate = [&](const auto& seconds_of) {
    const double plain_s = seconds_of(partitioner::Activation::Leaky);
    const double curved_s = seconds_of(partitioner::Activation::Swish);
    constexpr double kLeastPart = 0.01;  // what is measured varies
    return bytes_of_maps(1) / std::max(curved_s - plain_s, kLeastPart * plain_s);
  };
  const double backward = beyond_rate([&](partitioner::Activation activation) {
    return activate_backward_seconds(timer, allowed_s / 4, activation, maps);
  });
  const double forward = beyond_rate([&](partitioner::Activation activation) {
    return timer.seconds(allowed_s / 4, [&] {
      activate_forward(
          activation, View<const float>(maps.in.next(kMap)), kMap, maps.out.next(kMap));
    });
  });
  return {forward, backward};
}

// 2x2 of stride 2.
PassRates pool_rates(const TrialTimer& timer, double allowed_s, ProbeMaps& maps) {
  Region output = kMap;
  output.rows.end /= 2;
  output.cols.end /= 2;
  const PoolSite site{{2, 2, 0}, kMap, output};
  Tensor<ArgmaxOffset> argmax(output);
  const double forward_s = timer.seconds(allowed_s / 2, [&] {
    max_pool_forward<float>(site, maps.in.next(kMap), {maps.out.next(output), argmax.view()});
  });
  const double backward_s = timer.seconds(allowed_s / 2, [&] {
    max_pool_backward<float>(
        site, maps.out.next(output), std::as_const(argmax).view(), maps.gradient.next(kMap));
  });
  constexpr double kMaps = 1.25;
  return {bytes_of_maps(kMaps) / forward_s, bytes_of_maps(kMaps) / backward_s};
}

// A shortcut: the sum of two maps.
PassRates elementwise_rates(const TrialTimer& timer, double allowed_s, ProbeMaps& maps) {
  const double forward_s = timer.seconds(allowed_s / 2, [&] {
    const View<float> sum = maps.out.next(kMap);
    const View<const float> first = maps.in.next(kMap);
    add_cells<float>(1, first, maps.in.next(kMap), kMap, sum);
  });
  const double backward_s = timer.seconds(allowed_s / 2, [&] {
    const View<const float> sum = maps.out.next(kMap);
    copy_cells_backward<float>({}, 1, sum, kMap, maps.gradient.next(kMap), true);
    copy_cells_backward<float>({}, 1, sum, kMap, maps.gradient.next(kMap), true);
  });
  constexpr double kMaps = 3;
  return {bytes_of_maps(kMaps) / forward_s, bytes_of_maps(kMaps) / backward_s};
}

// Read by as many threads as operators have, each some megabytes in large pages, as weights are;
// more in all than a cache holds.
double memory_bytes_per_s(const TrialTimer& timer, double allowed_s) {
  constexpr Index kLeast = Index{2} << 20U;
  const Index part = std::max(kLeast, cold_elements() / threads());
  const Array<std::uint32_t> numbers(threads() * part);
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(threads()));
  const auto sum = [&](int i) {
    const std::uint32_t* begin = numbers.data() + i * part;
    sums[static_cast<std::size_t>(i)] = std::accumulate(begin, begin + part, std::uint32_t{0});
  };
  const double seconds = timer.seconds(allowed_s, [&] {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads(); ++i) {
      others.emplace_back(sum, i);
    }
    sum(0);
  });
  expects(sums.back() == 0, "an array begins with zeros");
  return static_cast<double>(numbers.bytes()) / seconds;
}

// Packing and unpacking of a few rows, as messages between tiles have them.
double copied_bytes_per_s(const TrialTimer& timer, double allowed_s, ProbeMaps& maps) {
  Region halo = kMap;
  halo.rows = {8, 12};
  Array<float> packed(halo.volume());
  const double both_s = timer.seconds(allowed_s, [&] {
    const View<float> map = maps.out.next(kMap);
    copy_out(View<const float>(map), halo, packed.data());
    copy_in(std::as_const(packed).data(), halo, map);
  });
  return 2 * static_cast<double>(packed.bytes()) / both_s;
}

}  // namespace

DeviceMeasurements measure_device(const DeviceProbeOptions& options) {
  constexpr double kPart = 0.03;  // of the time, for each of what follows
  const double part_s = kPart * options.seconds;
  const double start = now_s();
  const TrialTimer timer;
  const ProcessorShare share;
  constexpr Index kMapsPart = 8;  // of the memory, for each array of maps
  ProbeMaps maps(
      ColdArray::elements(options.memory_bytes / kMapsPart / static_cast<Index>(sizeof(float))));
  DeviceMeasurements measurements;
  DeviceProfile& profile = measurements.profile;
  profile.copied_bytes_per_s = copied_bytes_per_s(timer, part_s, maps);
  profile.memory_bytes_per_s = memory_bytes_per_s(timer, part_s);
  profile.normalize = normalize_rates(timer, part_s, maps);
  profile.activate = activate_rates(timer, part_s, maps);
  profile.exponential = exponential_rates(timer, part_s, maps);
  profile.pool = pool_rates(timer, part_s, maps);
  profile.elementwise = elementwise_rates(timer, part_s, maps);
  measure_convolutions(
      options, timer, start + options.seconds - now_s(), share, maps, measurements);
  measurements.processor_share = share.so_far();
  if (timer.counts_processor_time()) {
    share_out(measurements.processor_share, profile);
  }
  return measurements;
}

}  // namespace tessera::engine
