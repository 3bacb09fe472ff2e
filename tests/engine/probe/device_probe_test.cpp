#include "engine/probe/device_probe.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "engine/probe/probe_trials.h"
#include "engine/probe/repeated_timing.h"
#include "engine/probe/update_probe.h"
#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::choose_trials;
using engine::ConvolutionKernel;
using engine::ConvolutionPoint;

const std::vector<ConvolutionKernel> kDirect{ConvolutionKernel::Direct};
const std::vector<ConvolutionKernel> kBoth{ConvolutionKernel::Direct, ConvolutionKernel::Winograd4};

partitioner::Network model(const char* name) {
  return partitioner::read_model(std::string(TESSERA_SOURCE_DIR "/models/") + name).network;
}

bool is_distinct(std::vector<ConvolutionPoint> trials) {
  for (auto trial = trials.begin(); trial != trials.end(); ++trial) {
    if (std::find(trial + 1, trials.end(), *trial) != trials.end()) {
      return false;
    }
  }
  return true;
}

TEST_CASE(
    "trials of a model are its distinct convolutions, small tiles of all before larger ones") {
  const auto all = engine::model_trials(model("yolov2-early.cfg"), kBoth);
  CHECK(is_distinct(all));
  // Its usual kernels first.
  const auto is_usual = [](const ConvolutionPoint& trial) {
    const bool winograd = trial.size == 3 && trial.channels > 3;
    return trial.kernel == (winograd ? ConvolutionKernel::Winograd4 : ConvolutionKernel::Direct);
  };
  const auto others = std::partition_point(all.begin(), all.end(), is_usual);
  CHECK(std::none_of(others, all.end(), is_usual));
  std::vector<ConvolutionPoint> trials(all.begin(), others);
  // A third of the filters, whole blocks of them: of layers 10, 12 and 14, 13 and 15.
  const auto part_of_filters = [](const ConvolutionPoint& trial) {
    return trial.filters == 96 || trial.filters == 176;
  };
  CHECK(std::count_if(trials.begin(), trials.end(), part_of_filters) == 2 * 3);
  const auto few = std::find_if(trials.begin(), trials.end(), part_of_filters);
  CHECK(3 * std::distance(trials.begin(), few) == 2 * (std::ssize(trials) - 6));
  std::erase_if(trials, part_of_filters);
  REQUIRE(trials.size() % 3 == 0);
  const std::size_t third = trials.size() / 3;
  REQUIRE(third > 0);
  for (std::size_t i = 0; i < 2 * third; ++i) {
    CHECK(trials[i].channels == trials[i + third].channels);
    CHECK(trials[i].filters == trials[i + third].filters);
    CHECK(2 * trials[i].rows - trials[i + third].rows <= 1);
    CHECK(2 * trials[i].rows >= trials[i + third].rows);
  }
  CHECK(trials.back().rows == model("yolov2-early.cfg").shape(14).rows);
  CHECK(trials[0].channels == 3);
}

TEST_CASE("a kernel is tried where it can compute the layer, and nowhere else") {
  const auto count = [](const std::vector<ConvolutionPoint>& trials, ConvolutionKernel kernel) {
    return std::count_if(
        trials.begin(), trials.end(), [&](const auto& trial) { return trial.kernel == kernel; });
  };
  for (const auto& trials :
       {engine::model_trials(model("fashion-resnet.cfg"), kBoth), engine::standard_trials(kBoth)}) {
    CHECK(is_distinct(trials));
    CHECK(count(trials, ConvolutionKernel::Winograd4) > 0);
    CHECK(count(trials, ConvolutionKernel::Winograd4) < count(trials, ConvolutionKernel::Direct));
    for (const ConvolutionPoint& trial : trials) {
      const bool any = trial.kernel == ConvolutionKernel::Direct;
      CHECK((any || (trial.size == 3 && trial.stride == 1 && trial.groups == 1)));
    }
  }
}

TEST_CASE("trials are chosen within time and memory, in their order, and no other is lost") {
  const auto wanted = engine::standard_trials(kBoth);
  constexpr double kRate = 1e9;
  const auto seconds = [](const std::vector<ConvolutionPoint>& trials) {
    double sum = 0;
    for (const ConvolutionPoint& trial : trials) {
      sum += 2 * engine::trial_flops(trial) / kRate;
    }
    return sum;
  };
  const double all_s = seconds(wanted);
  for (const double part : {0.0, 0.1, 0.5, 0.9, 1.001}) {
    CAPTURE(part);
    const auto choice = choose_trials(wanted, {part * all_s, Index{1} << 40U, kRate, kRate});
    CHECK(choice.chosen.size() + choice.left_out.size() == wanted.size());
    CHECK(seconds(choice.chosen) <= part * all_s);
    for (const ConvolutionPoint& trial : choice.left_out) {
      CHECK(seconds(choice.chosen) + 2 * engine::trial_flops(trial) / kRate > part * all_s);
    }
    auto next = wanted.begin();
    for (const ConvolutionPoint& trial : choice.chosen) {
      next = std::find(next, wanted.end(), trial);
      REQUIRE(next != wanted.end());
    }
    CHECK((part <= 1) == !choice.left_out.empty());
  }
  for (const Index bytes : {Index{0}, Index{4} << 20U}) {
    const auto choice = choose_trials(wanted, {1e9, bytes, kRate, kRate});
    CHECK_FALSE(choice.left_out.empty());
    for (const ConvolutionPoint& trial : choice.chosen) {
      CHECK(engine::trial_bytes(trial) <= bytes);
    }
  }
}

TEST_CASE("a slower kernel has fewer of its trials chosen") {
  const auto wanted = engine::standard_trials(kBoth);
  const auto choice = choose_trials(wanted, {1e6, Index{1} << 40U, 1e9, 1});
  REQUIRE_FALSE(choice.chosen.empty());
  for (const ConvolutionPoint& trial : choice.chosen) {
    CHECK(trial.kernel == ConvolutionKernel::Direct);
  }
}

TEST_CASE("something is timed at least twice, and the first time does not count") {
  int calls = 0;
  const double seconds = engine::median_seconds(0, [&] {
    const double start = engine::now_s();
    while (calls == 0 && engine::now_s() - start < 0.02) {
    }
    ++calls;
  });
  CHECK(calls == 2);
  CHECK(seconds < 0.02);
}

TEST_CASE(
    "a device is measured with the time and memory that there is, and its rates are numbers") {
  const auto wanted = engine::standard_trials(kBoth);
  const auto measured = engine::measure_device({wanted, 0.5, Index{64} << 20U});
  const auto& profile = measured.profile;
  const std::size_t common = engine::common_trials().size();
  CHECK(profile.convolutions.size() >= common);
  CHECK(profile.convolutions.size() + measured.left_out.size() == common + wanted.size());
  for (const ConvolutionPoint& point : profile.convolutions) {
    for (const double seconds :
         {point.forward_s, point.backward_data_s, point.backward_weights_s}) {
      CHECK(seconds > 0);
      CHECK(seconds < 60);
    }
  }
  for (const double rate : {profile.memory_bytes_per_s,
                            profile.copied_bytes_per_s,
                            profile.direct_flops_per_s,
                            profile.winograd_flops_per_s,
                            profile.normalize.forward_bytes_per_s,
                            profile.normalize.backward_bytes_per_s,
                            profile.activate.forward_bytes_per_s,
                            profile.activate.backward_bytes_per_s,
                            profile.pool.forward_bytes_per_s,
                            profile.pool.backward_bytes_per_s,
                            profile.elementwise.forward_bytes_per_s,
                            profile.elementwise.backward_bytes_per_s,
                            engine::measure_updated_weights_per_s(0.01)}) {
    CHECK(rate > 1e3);
    CHECK(std::isfinite(rate));
  }
  CHECK(measured.processor_share > 0);
  CHECK(measured.processor_share <= 1);
}

}  // namespace
