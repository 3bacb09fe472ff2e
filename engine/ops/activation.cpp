#include "engine/ops/activation.h"

#include "engine/ops/line_values.h"

namespace engine {

namespace {

template <class T>
T value_of(Activation activation, T x) {
  T y{};
  with_activation(activation, [&](auto function) { y = function.value(x); });
  return y;
}

template <class T>
T slope_of(Activation activation, T x, T y) {
  T slope{};
  with_activation(activation, [&](auto function) { slope = function.slope(x, y); });
  return slope;
}

}  // namespace

float activation_value(Activation activation, float x) {
  return value_of(activation, x);
}
double activation_value(Activation activation, double x) {
  return value_of(activation, x);
}
float activation_slope(Activation activation, float x) {
  return slope_of(activation, x, value_of(activation, x));
}
double activation_slope(Activation activation, double x) {
  return slope_of(activation, x, value_of(activation, x));
}
float activation_slope(Activation activation, float x, float y) {
  return slope_of(activation, x, y);
}
double activation_slope(Activation activation, double x, double y) {
  return slope_of(activation, x, y);
}

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
                               whole_lanes(run, in, out)},
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
         .lanes = whole_lanes(run, source, out, View<const T>(gradient)),
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

}  // namespace engine
