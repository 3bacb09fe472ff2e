// Which taps of a convolution's windows meet a cell of its input, in one dimension: what backward
// passes gather.

#pragma once

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

// A cell meets tap `tap` of output `out`, tap + stride of out - 1, and so on, `count` taps in all.
struct MetTaps {
  Index tap = 0;
  Index count = 0;
  Index out = 0;
};

// The cells that windows of outputs in `outs` have, in one dimension.
[[nodiscard]] inline Range window_cells(const ConvolutionShape& shape, const Range& outs) {
  return {outs.begin * shape.stride - shape.padding,
          (outs.end - 1) * shape.stride - shape.padding + shape.size};
}

// Those of outputs in `outs`.
[[nodiscard]] inline MetTaps met_taps(const ConvolutionShape& shape,
                                      Index cell,
                                      const Range& outs) {
  MetTaps met;
  for (Index tap = shape.size - 1; tap >= 0; --tap) {
    const Index distance = cell + shape.padding - tap;
    if (distance % shape.stride == 0 && distance >= outs.begin * shape.stride &&
        distance < outs.end * shape.stride) {
      met = {tap, met.count + 1, distance / shape.stride};
    }
  }
  return met;
}

}  // namespace tessera::engine
