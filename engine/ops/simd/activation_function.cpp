#include "engine/ops/simd/activation_function.h"

#include "engine/ops/simd/row_kernels.h"

namespace tessera::engine {

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

}  // namespace tessera::engine
