#include "engine/ops/activation/activation.h"

#include "engine/ops/loops/line_values.h"

namespace tessera::engine {

template <class T>
void activate_forward(Activation activation, View<const T> in, const Region& region, View<T> out) {
  if (activation == Activation::Linear && in.data == out.data) {
    return;
  }
  const auto runs = channel_runs(region.channels, in, out);
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    row_kernels<T>().activate({line_start(in, run, n, row, region.cols.begin),
                               in.block,
                               out.block,
                               region.cols.size(),
                               channels_of_block(run, in, out)},
                              activation,
                              line_start(out, run, n, row, region.cols.begin));
  });
}

template <class T>
std::vector<double> activate_backward(Activation activation,
                                      View<const T> in,
                                      View<const T> out,
                                      const Region& region,
                                      View<T> gradient) {
  if (region.empty()) {
    return {};
  }
  const bool needs_input = slope_needs_input(activation);
  const View<const T> source = needs_input ? in : out;
  const auto runs = channel_runs(region.channels, source, out, View<const T>(gradient));
  LineValues<double> lines(region);
  lines.compute(runs, [&](const Range& run, Index n, Index row, auto& sums) {
    row_kernels<T>().activation_gradient(
        {.x = needs_input ? line_start(source, run, n, row, region.cols.begin) : nullptr,
         .x_step = source.block,
         .y = line_start(out, run, n, row, region.cols.begin),
         .y_step = out.block,
         .gradient = line_start(gradient, run, n, row, region.cols.begin),
         .gradient_step = gradient.block,
         .cells = region.cols.size(),
         .channels = channels_of_block(run, source, out, View<const T>(gradient)),
         .activation = activation},
        sums.data());
  });
  return lines.total([](double& total, double line) { total += line; });
}

template void activate_forward<float>(Activation, View<const float>, const Region&, View<float>);
template void activate_forward<double>(Activation, View<const double>, const Region&, View<double>);
template std::vector<double> activate_backward<float>(
    Activation, View<const float>, View<const float>, const Region&, View<float>);
template std::vector<double> activate_backward<double>(
    Activation, View<const double>, View<const double>, const Region&, View<double>);

}  // namespace tessera::engine
