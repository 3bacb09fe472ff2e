// Convolutions of a map of one channel, whose pixels lie side by side in a row: they are the lanes
// of sums for up to kNarrowChannels filters, which alone would fill half a vector. Sums are in the
// order of direct.h, so they have the same bits. Only the direct kernels' own files include this.

#pragma once

#include "engine/ops/convolution/kernel_passes.h"

namespace tessera::engine {

// Whether these kernels take a region of the output, or of its gradient: all channels of `out`.
template <class T>
[[nodiscard]] bool is_plane(const ConvolutionShape& shape,
                            const View<const T>& in,
                            const Region& region,
                            const View<const T>& out);

template <class T>
void plane_forward(const ConvolutionShape& shape, const ForwardArguments<T>& given);

// Adds to the weights' gradient, of the region's filters. Pixels that are kBlockChannels apart in a
// row of the output are summed first, then those sums from the left to the right.
template <class T>
void plane_backward_weights(const ConvolutionShape& shape,
                            View<const T> in,
                            View<const T> out_gradient,
                            const Region& region,
                            T* weight_gradient);

}  // namespace tessera::engine
