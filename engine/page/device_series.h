// What devices.jsonl says of each rank over time, as series for a chart.

#pragma once

#include <functional>
#include <vector>

#include "engine/chart/line_chart.h"
#include "engine/run_view/run_data.h"

namespace tessera::engine {

using SampleValue = std::function<double(const DeviceSample&)>;

// A value at each sample; a gap of several seconds between samples is one in the series.
[[nodiscard]] std::vector<Point> sampled(const RunDevice& device, const SampleValue& value);

// How fast a counter rises between samples, per second. Where it begins anew is a gap.
[[nodiscard]] std::vector<Point> rate_of(const RunDevice& device, const SampleValue& counter);

// The energy since the start of the run, in joules. Empty where it is not known.
[[nodiscard]] std::vector<Point> energy_of(const RunDevice& device);

// Means within so many columns of equal width between two times; a column without a sample is a
// gap. Few points come back as they are.
[[nodiscard]] std::vector<Point> column_means(const std::vector<Point>& points,
                                              double begin_s,
                                              double end_s,
                                              std::size_t columns);

// Adds the series of all ranks to a chart: a line each, or of many ranks their median with a band
// from the lowest to the highest. Ranks without a value are left out.
void add_ranks(LineChart& chart,
               const RunData& run,
               const std::function<std::vector<Point>(const RunDevice&)>& series);

}  // namespace tessera::engine
