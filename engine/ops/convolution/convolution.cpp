#include "engine/ops/convolution/convolution.h"

#include <algorithm>

#include "engine/ops/convolution/argmax_weights.h"
#include "engine/ops/convolution/depthwise.h"
#include "engine/ops/convolution/direct.h"
#include "engine/ops/convolution/met_taps.h"
#include "engine/ops/convolution/reference.h"
#include "engine/ops/convolution/winograd.h"

namespace tessera::engine {

namespace {

using partitioner::winograd_side;

// The cells of the map that windows of `region` meet.
Region met_by(const ConvolutionShape& shape, const Region& region, const Region& map) {
  const Range groups{region.channels.begin / shape.group_filters(),
                     (region.channels.end - 1) / shape.group_filters() + 1};
  return intersect(map,
                   {region.images,
                    {groups.begin * shape.group_channels(), groups.end * shape.group_channels()},
                    window_cells(shape.rows(), region.rows),
                    window_cells(shape.cols(), region.cols)});
}

// Calls work(kernel) with the kernel that computes convolutions of this shape.
template <class Work>
auto with_kernel(ConvolutionKernel kernel, const ConvolutionShape& shape, Work work) {
  if (kernel == ConvolutionKernel::Reference) {
    return work(ReferenceKernel{shape});
  }
  if (const Index side = winograd_side(kernel); side > 0) {
    return work(WinogradKernel{shape, side});
  }
  return is_depthwise(shape) ? work(DepthwiseKernel{shape}) : work(DirectKernel{shape});
}

// Whether the kernel assigns each wanted cell of an input's gradient itself where it is asked to.
bool assigns_all(ConvolutionKernel kernel,
                 const ConvolutionShape& shape,
                 const Region& region,
                 const Region& wanted) {
  const bool can =
      winograd_side(kernel) > 0 || (kernel == ConvolutionKernel::Direct && !is_depthwise(shape) &&
                                    DirectKernel{shape}.assigns());
  return can && contains(met_by(shape, region, wanted), wanted);
}

}  // namespace

Index convolution_workspace(ConvolutionKernel kernel,
                            ConvolutionPass pass,
                            const ConvolutionShape& shape,
                            const Region& region) {
  if (const Index side = winograd_side(kernel); side > 0) {
    return WinogradKernel{shape, side}.workspace(region, pass);
  }
  const bool is_direct = kernel == ConvolutionKernel::Direct && !is_depthwise(shape);
  return is_direct && pass == ConvolutionPass::BackwardData ? DirectKernel{shape}.workspace(region)
                                                            : 0;
}

Index convolution_workspace(const ConvolutionMethod& method,
                            const Region& computed,
                            const Region& backward,
                            bool to_data) {
  const ConvolutionShape& shape = method.shape;
  const ConvolutionKernels& kernels = method.kernels;
  const auto needed = [&](ConvolutionKernel kernel, ConvolutionPass pass, const Region& region) {
    return convolution_workspace(kernel, pass, shape, region);
  };
  return std::max(
      {needed(kernels.forward, ConvolutionPass::Forward, computed),
       needed(kernels.backward_weights, ConvolutionPass::BackwardWeights, backward),
       to_data ? needed(kernels.backward_data, ConvolutionPass::BackwardData, backward) : 0});
}

template <class T>
bool convolution_prepare(const ConvolutionMethod& method,
                         const T* weight,
                         Index filters,
                         T* workspace) {
  const Index side = winograd_side(method.kernels.forward);
  return side > 0 && WinogradKernel{method.shape, side}.prepare(weight, filters, workspace);
}

template <class T>
void convolution_forward(const ConvolutionMethod& method,
                         View<const T> in,
                         const ForwardFilters<T>& filters,
                         const ConvolutionOutput<T>& out,
                         T* workspace) {
  if (!out.region.empty()) {
    with_kernel(method.kernels.forward, method.shape, [&](const auto& kernel) {
      kernel.forward(ForwardArguments<T>{in, filters, out, workspace});
    });
  }
}

template <class T>
void convolution_backward_data(const ConvolutionMethod& method,
                               View<const T> out_gradient,
                               const Filters<T>& filters,
                               const Region& region,
                               const InputGradient<T>& in_gradient,
                               T* workspace) {
  const ConvolutionShape& shape = method.shape;
  const ConvolutionKernel kernel = method.kernels.backward_data;
  InputGradient<T> target = in_gradient;
  const Region wanted = intersect(target.map, target.cells.region);
  if (target.assign && (region.empty() || !assigns_all(kernel, shape, region, wanted))) {
    set_zero(target.cells, wanted);
    target.assign = false;
  }
  if (!region.empty()) {
    with_kernel(kernel, shape, [&](const auto& chosen) {
      chosen.backward_data(
          BackwardDataArguments<T>{out_gradient, filters, region, target, workspace});
    });
  }
}

template <class T>
bool takes_made_gradient(const ConvolutionMethod& method,
                         const View<const T>& in,
                         const View<const T>& out_gradient,
                         const Region& region) {
  return method.kernels.backward_weights == ConvolutionKernel::Direct &&
         !is_depthwise(method.shape) &&
         DirectKernel{method.shape}.takes_made_gradient(in, out_gradient, region);
}

template <class T>
void convolution_backward_weights(const ConvolutionMethod& method,
                                  View<const T> in,
                                  const MadeGradient<T>& out_gradient,
                                  const Region& region,
                                  const WeightGradient<T>& weight_gradient) {
  if (!region.empty()) {
    DirectKernel{method.shape}.backward_weights(
        BackwardWeightsArguments<T>{in, out_gradient.cells, region, weight_gradient, nullptr},
        out_gradient.make);
  }
}

template <class T>
void convolution_backward_weights(const ConvolutionMethod& method,
                                  View<const T> in,
                                  const ArgmaxGradient<T>& out_gradient,
                                  const Region& region,
                                  const WeightGradient<T>& weight_gradient) {
  if (!region.empty()) {
    argmax_backward_weights(
        method.shape,
        in,
        out_gradient,
        region,
        weight_gradient.weights +
            (region.channels.begin - weight_gradient.first) * method.shape.row());
  }
}

template <class T>
bool assigns_all_weights(const ConvolutionMethod& method,
                         const View<const T>& in,
                         const View<const T>& out_gradient,
                         const Region& region) {
  if (method.kernels.backward_weights != ConvolutionKernel::Direct) {
    return false;
  }
  return is_depthwise(method.shape) ||
         DirectKernel{method.shape}.assigns_weights(in, out_gradient, region);
}

template <class T>
void convolution_backward_weights(const ConvolutionMethod& method,
                                  View<const T> in,
                                  View<const T> out_gradient,
                                  const Region& region,
                                  const WeightGradient<T>& weight_gradient,
                                  T* workspace) {
  if (!region.empty()) {
    with_kernel(method.kernels.backward_weights, method.shape, [&](const auto& kernel) {
      kernel.backward_weights(
          BackwardWeightsArguments<T>{in, out_gradient, region, weight_gradient, workspace});
    });
  }
}

template bool convolution_prepare<float>(const ConvolutionMethod&, const float*, Index, float*);
template void convolution_forward<float>(const ConvolutionMethod&,
                                         View<const float>,
                                         const ForwardFilters<float>&,
                                         const ConvolutionOutput<float>&,
                                         float*);
template void convolution_backward_data<float>(const ConvolutionMethod&,
                                               View<const float>,
                                               const Filters<float>&,
                                               const Region&,
                                               const InputGradient<float>&,
                                               float*);
template bool takes_made_gradient<float>(const ConvolutionMethod&,
                                         const View<const float>&,
                                         const View<const float>&,
                                         const Region&);
template void convolution_backward_weights<float>(const ConvolutionMethod&,
                                                  View<const float>,
                                                  const ArgmaxGradient<float>&,
                                                  const Region&,
                                                  const WeightGradient<float>&);
template void convolution_backward_weights<float>(const ConvolutionMethod&,
                                                  View<const float>,
                                                  const MadeGradient<float>&,
                                                  const Region&,
                                                  const WeightGradient<float>&);
template bool assigns_all_weights<float>(const ConvolutionMethod&,
                                         const View<const float>&,
                                         const View<const float>&,
                                         const Region&);
template void convolution_backward_weights<float>(const ConvolutionMethod&,
                                                  View<const float>,
                                                  View<const float>,
                                                  const Region&,
                                                  const WeightGradient<float>&,
                                                  float*);
template bool convolution_prepare<double>(const ConvolutionMethod&, const double*, Index, double*);
template void convolution_forward<double>(const ConvolutionMethod&,
                                          View<const double>,
                                          const ForwardFilters<double>&,
                                          const ConvolutionOutput<double>&,
                                          double*);
template void convolution_backward_data<double>(const ConvolutionMethod&,
                                                View<const double>,
                                                const Filters<double>&,
                                                const Region&,
                                                const InputGradient<double>&,
                                                double*);
template bool takes_made_gradient<double>(const ConvolutionMethod&,
                                          const View<const double>&,
                                          const View<const double>&,
                                          const Region&);
template void convolution_backward_weights<double>(const ConvolutionMethod&,
                                                   View<const double>,
                                                   const ArgmaxGradient<double>&,
                                                   const Region&,
                                                   const WeightGradient<double>&);
template void convolution_backward_weights<double>(const ConvolutionMethod&,
                                                   View<const double>,
                                                   const MadeGradient<double>&,
                                                   const Region&,
                                                   const WeightGradient<double>&);
template bool assigns_all_weights<double>(const ConvolutionMethod&,
                                          const View<const double>&,
                                          const View<const double>&,
                                          const Region&);
template void convolution_backward_weights<double>(const ConvolutionMethod&,
                                                   View<const double>,
                                                   View<const double>,
                                                   const Region&,
                                                   const WeightGradient<double>&,
                                                   double*);

}  // namespace tessera::engine
