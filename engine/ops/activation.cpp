#include "engine/ops/activation.h"

#include "engine/ops/lines.h"
#include "engine/ops/row_kernels.h"

namespace engine {

namespace {

template <class T>
T value_of(Activation activation, T x) {
  T y{};
  with_activation(activation, [&](auto function) { y = function.value(x); });
  return y;
}

template <class T>
T slope_of(Activation activation, T x) {
  T slope{};
  with_activation(activation, [&](auto function) { slope = function.slope(x, function.value(x)); });
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
  return slope_of(activation, x);
}
double activation_slope(Activation activation, double x) {
  return slope_of(activation, x);
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
void activate_backward(Activation activation,
                       View<const T> in,
                       View<const T> out,
                       const Region& region,
                       View<T> gradient) {
  if (activation == Activation::Linear) {
    return;
  }
  const View<const T> source = slope_needs_input(activation) ? in : out;
  with_activation(activation, [&](auto function) {
    const auto runs = channel_runs(region.channels, source, out, View<const T>(gradient));
    for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
      const T* x = line_start(source, run, n, row, region.cols.begin);
      const T* y = line_start(out, run, n, row, region.cols.begin);
      T* g = line_start(gradient, run, n, row, region.cols.begin);
      for (Index col = 0; col < region.cols.size(); ++col) {
        for_each_lane(run.size(), [&](Index l) {
          g[col * gradient.block + l] *=
              function.slope(x[col * source.block + l], y[col * out.block + l]);
        });
      }
    });
  });
}

template void activate_forward<float>(Activation, View<const float>, const Region&, View<float>);
template void activate_forward<double>(Activation, View<const double>, const Region&, View<double>);
template void activate_backward<float>(
    Activation, View<const float>, View<const float>, const Region&, View<float>);
template void activate_backward<double>(
    Activation, View<const double>, View<const double>, const Region&, View<double>);

}  // namespace engine
