#include "engine/ops/convolution.h"

#include <algorithm>

#include "engine/ops/depthwise.h"
#include "engine/ops/direct.h"
#include "engine/ops/reference.h"
#include "engine/ops/winograd.h"

namespace engine {

namespace {

bool is_winograd(ConvolutionKernel kernel) {
  return winograd_side(kernel) > 0;
}

ConvolutionWorkspaceSize workspace_of(ConvolutionKernel kernel,
                                      const ConvolutionShape& shape,
                                      const Range& filters,
                                      const Region& output) {
  if (kernel == ConvolutionKernel::Reference) {
    return {};
  }
  if (is_winograd(kernel)) {
    return winograd_workspace(
        WinogradMethod{shape, winograd_side(kernel)}, filters, !output.empty());
  }
  if (is_depthwise(shape)) {
    return {};
  }
  return direct_workspace(shape, output);
}

}  // namespace

ConvolutionWorkspaceSize larger(const ConvolutionWorkspaceSize& a,
                                const ConvolutionWorkspaceSize& b) {
  return {
      std::max(a.weights, b.weights), std::max(a.gradient, b.gradient), std::max(a.tiles, b.tiles)};
}

ConvolutionWorkspaceSize convolution_workspace(const ConvolutionMethod& method,
                                               const Range& filters,
                                               const Region& output) {
  const auto& [shape, kernels] = method;
  ConvolutionWorkspaceSize size = workspace_of(kernels.forward, shape, filters, {});
  if (!output.empty()) {
    size = larger(size, workspace_of(kernels.backward_data, shape, filters, output));
    size = larger(size, workspace_of(kernels.backward_weights, shape, filters, output));
  }
  return size;
}

template <class T>
void convolution_forward(const ConvolutionMethod& method,
                         View<const T> in,
                         const T* weight,
                         const T* bias,
                         const Region& region,
                         View<T> out,
                         ConvolutionWorkspace<T>& workspace) {
  if (region.empty()) {
    return;
  }
  const ConvolutionShape& shape = method.shape;
  const ConvolutionKernel kernel = method.kernels.forward;
  if (kernel == ConvolutionKernel::Reference) {
    reference_forward(shape, in, weight, bias, region, out);
  } else if (is_winograd(kernel)) {
    winograd_forward(
        WinogradMethod{shape, winograd_side(kernel)}, in, weight, bias, region, out, workspace);
  } else if (is_depthwise(shape)) {
    depthwise_forward(shape, in, weight, bias, region, out);
  } else {
    direct_forward(shape, in, weight, bias, region, out);
  }
}

template <class T>
void convolution_backward_data(const ConvolutionMethod& method,
                               View<const T> out_gradient,
                               const Filters<T>& filters,
                               const Region& region,
                               const Region& map,
                               View<T> in_gradient,
                               ConvolutionWorkspace<T>& workspace) {
  if (region.empty()) {
    return;
  }
  const ConvolutionShape& shape = method.shape;
  const ConvolutionKernel kernel = method.kernels.backward_data;
  if (kernel == ConvolutionKernel::Reference) {
    reference_backward_data(shape, out_gradient, filters, region, map, in_gradient);
  } else if (is_winograd(kernel)) {
    winograd_backward_data(WinogradMethod{shape, winograd_side(kernel)},
                           out_gradient,
                           filters,
                           region,
                           map,
                           in_gradient,
                           workspace);
  } else if (is_depthwise(shape)) {
    depthwise_backward_data(shape, out_gradient, filters, region, map, in_gradient);
  } else {
    direct_backward_data(shape, out_gradient, filters, region, map, in_gradient, workspace);
  }
}

template <class T>
void convolution_backward_weights(const ConvolutionMethod& method,
                                  View<const T> in,
                                  View<const T> out_gradient,
                                  const Region& region,
                                  Index first_filter,
                                  T* weight_gradient,
                                  ConvolutionWorkspace<T>& workspace) {
  if (region.empty()) {
    return;
  }
  const ConvolutionShape& shape = method.shape;
  const ConvolutionKernel kernel = method.kernels.backward_weights;
  if (kernel == ConvolutionKernel::Reference) {
    reference_backward_weights(shape, in, out_gradient, region, first_filter, weight_gradient);
  } else if (is_winograd(kernel)) {
    winograd_backward_weights(WinogradMethod{shape, winograd_side(kernel)},
                              in,
                              out_gradient,
                              region,
                              first_filter,
                              weight_gradient,
                              workspace);
  } else if (is_depthwise(shape)) {
    depthwise_backward_weights(shape, in, out_gradient, region, first_filter, weight_gradient);
  } else {
    direct_backward_weights(shape, in, out_gradient, region, first_filter, weight_gradient);
  }
}

template void convolution_forward<float>(const ConvolutionMethod&,
                                         View<const float>,
                                         const float*,
                                         const float*,
                                         const Region&,
                                         View<float>,
                                         ConvolutionWorkspace<float>&);
template void convolution_backward_data<float>(const ConvolutionMethod&,
                                               View<const float>,
                                               const Filters<float>&,
                                               const Region&,
                                               const Region&,
                                               View<float>,
                                               ConvolutionWorkspace<float>&);
template void convolution_backward_weights<float>(const ConvolutionMethod&,
                                                  View<const float>,
                                                  View<const float>,
                                                  const Region&,
                                                  Index,
                                                  float*,
                                                  ConvolutionWorkspace<float>&);
template void convolution_forward<double>(const ConvolutionMethod&,
                                          View<const double>,
                                          const double*,
                                          const double*,
                                          const Region&,
                                          View<double>,
                                          ConvolutionWorkspace<double>&);
template void convolution_backward_data<double>(const ConvolutionMethod&,
                                                View<const double>,
                                                const Filters<double>&,
                                                const Region&,
                                                const Region&,
                                                View<double>,
                                                ConvolutionWorkspace<double>&);
template void convolution_backward_weights<double>(const ConvolutionMethod&,
                                                   View<const double>,
                                                   View<const double>,
                                                   const Region&,
                                                   Index,
                                                   double*,
                                                   ConvolutionWorkspace<double>&);

}  // namespace engine
