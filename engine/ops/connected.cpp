#include "engine/ops/connected.h"

#include <Eigen/Core>

namespace engine {

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
Eigen::Map<const Matrix<T>> matrix(const T* values, Index rows, Index cols) {
  return {values, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(cols)};
}

template <class T>
Eigen::Map<Matrix<T>> matrix(T* values, Index rows, Index cols) {
  return {values, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(cols)};
}

}  // namespace

template <class T>
void connected_forward(
    const ConnectedSize& size, const T* in, const T* weight, const T* bias, T* out) {
  auto product = matrix(out, size.images, size.outputs);
  product.noalias() =
      matrix(in, size.images, size.inputs) * matrix(weight, size.outputs, size.inputs).transpose();
  if (bias != nullptr) {
    product.rowwise() += matrix(bias, 1, size.outputs).row(0);
  }
}

template <class T>
void connected_backward_data(const ConnectedSize& size,
                             const T* out_gradient,
                             const T* weight,
                             T* in_gradient) {
  matrix(in_gradient, size.images, size.inputs).noalias() =
      matrix(out_gradient, size.images, size.outputs) * matrix(weight, size.outputs, size.inputs);
}

template <class T>
void connected_backward_weights(const ConnectedSize& size,
                                const T* in,
                                const T* out_gradient,
                                T* weight_gradient) {
  matrix(weight_gradient, size.outputs, size.inputs).noalias() +=
      matrix(out_gradient, size.images, size.outputs).transpose() *
      matrix(in, size.images, size.inputs);
}

template void connected_forward<float>(
    const ConnectedSize&, const float*, const float*, const float*, float*);
template void connected_forward<double>(
    const ConnectedSize&, const double*, const double*, const double*, double*);
template void connected_backward_data<float>(const ConnectedSize&,
                                             const float*,
                                             const float*,
                                             float*);
template void connected_backward_data<double>(const ConnectedSize&,
                                              const double*,
                                              const double*,
                                              double*);
template void connected_backward_weights<float>(const ConnectedSize&,
                                                const float*,
                                                const float*,
                                                float*);
template void connected_backward_weights<double>(const ConnectedSize&,
                                                 const double*,
                                                 const double*,
                                                 double*);

}  // namespace engine
