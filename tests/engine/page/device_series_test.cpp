#include "engine/page/device_series.h"

#include <algorithm>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::DeviceSample;
using engine::known;
using engine::kUnknown;
using engine::Point;
using engine::RunDevice;

DeviceSample at(double t_s, double counter) {
  DeviceSample sample;
  sample.t_s = t_s;
  sample.tx_bytes = counter;
  return sample;
}

double sent(const DeviceSample& sample) {
  return sample.tx_bytes;
}

std::size_t gaps(const std::vector<Point>& points) {
  return static_cast<std::size_t>(std::count_if(
      points.begin(), points.end(), [](const Point& point) { return !known(point.y); }));
}

TEST_CASE("a rate is the rise of a counter over the time between samples") {
  RunDevice device;
  device.samples = {at(1, 100), at(2, 150), at(4, 350)};
  CHECK(rate_of(device, sent) == std::vector<Point>{{2, 50}, {4, 100}});
}

TEST_CASE("there is no rate over a gap, nor where a counter begins anew") {
  RunDevice device;
  device.samples = {at(1, 100), at(2, 150), at(60, 900), at(61, 910), at(62, 5), at(63, 6)};
  const std::vector<Point> rates = rate_of(device, sent);
  CHECK(gaps(rates) == 2);
  std::vector<double> values;
  for (const Point& rate : rates) {
    if (known(rate.y)) {
      values.push_back(rate.y);
    }
  }
  CHECK(values == std::vector<double>{50, 10, 1});
}

TEST_CASE("a counter that is unknown has no rate") {
  RunDevice device;
  device.samples = {at(1, kUnknown), at(2, kUnknown), at(3, kUnknown)};
  for (const Point& rate : rate_of(device, sent)) {
    CHECK(!known(rate.y));
  }
}

TEST_CASE("samples that are missing for a while are a gap in the series of a value") {
  RunDevice device;
  device.samples = {at(1, 5), at(2, 6), at(30, 7)};
  CHECK(gaps(sampled(device, sent)) == 1);
  CHECK(sampled(device, sent).size() == 4);
}

TEST_CASE("means of columns keep a constant, and a column without samples is a gap") {
  std::vector<Point> points;
  for (int i = 0; i < 1000; ++i) {
    if (i < 400 || i >= 500) {
      points.push_back({static_cast<double>(i), 3});
    }
  }
  const std::vector<Point> means = engine::column_means(points, 0, 1000, 100);
  CHECK(means.size() == 100);
  CHECK(gaps(means) == 10);
  for (const Point& mean : means) {
    CHECK((!known(mean.y) || mean.y == 3));
  }
}

engine::RunData run_of(int ranks, double seconds) {
  engine::RunData run;
  for (int rank = 0; rank < ranks; ++rank) {
    for (double t_s = 0; t_s < seconds; ++t_s) {
      run.devices[rank].samples.push_back(at(t_s, 10 * rank + t_s / seconds));
    }
  }
  return run;
}

std::vector<Point> bytes(const RunDevice& device) {
  return sampled(device, sent);
}

TEST_CASE("few ranks have a line each, many a median with a band from the lowest to the highest") {
  engine::LineChart few;
  add_ranks(few, run_of(4, 50), bytes);
  CHECK(few.series.size() == 4);
  CHECK(few.bands.empty());
  for (const double seconds : {3.0, 50.0, 5000.0}) {
    engine::LineChart many;
    add_ranks(many, run_of(16, seconds), bytes);
    REQUIRE(many.series.size() == 1);
    REQUIRE(many.bands.size() == 1);
    CHECK(gaps(many.series[0].points) == 0);
    CHECK(many.bands[0].low.front().y < 1.1);
    CHECK(many.bands[0].high.front().y >= 150);
    CHECK(many.series[0].points.front().y >= 80);
  }
}

TEST_CASE("ranks that say nothing of a value are left out") {
  engine::RunData run = run_of(3, 10);
  for (DeviceSample& sample : run.devices[1].samples) {
    sample.tx_bytes = kUnknown;
  }
  engine::LineChart chart;
  add_ranks(chart, run, bytes);
  REQUIRE(chart.series.size() == 2);
  CHECK(chart.series[1].name == "rank 2");
}

}  // namespace
