#include "engine/ops/activation/softmax.h"

#include <algorithm>
#include <cmath>

namespace tessera::engine {

template <class T>
void softmax_forward(const SoftmaxRun& run, const T* in, T* out) {
  const T inverse = static_cast<T>(1 / run.temperature);
  T largest = in[0];
  for (Index i = 1; i < run.size; ++i) {
    largest = std::max(largest, in[i * run.stride]);
  }
  T sum = 0;
  for (Index i = 0; i < run.size; ++i) {
    const T value = std::exp((in[i * run.stride] - largest) * inverse);
    out[i * run.stride] = value;
    sum += value;
  }
  for (Index i = 0; i < run.size; ++i) {
    out[i * run.stride] /= sum;
  }
}

template <class T>
void softmax_backward(const SoftmaxRun& run, const T* out, const T* out_gradient, T* in_gradient) {
  const T inverse = static_cast<T>(1 / run.temperature);
  T mean = 0;
  for (Index i = 0; i < run.size; ++i) {
    mean += out[i * run.stride] * out_gradient[i * run.stride];
  }
  for (Index i = 0; i < run.size; ++i) {
    in_gradient[i * run.stride] +=
        out[i * run.stride] * (out_gradient[i * run.stride] - mean) * inverse;
  }
}

template void softmax_forward<float>(const SoftmaxRun&, const float*, float*);
template void softmax_forward<double>(const SoftmaxRun&, const double*, double*);
template void softmax_backward<float>(const SoftmaxRun&, const float*, const float*, float*);
template void softmax_backward<double>(const SoftmaxRun&, const double*, const double*, double*);

}  // namespace tessera::engine
