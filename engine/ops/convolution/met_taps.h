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
[[nodiscard]] inline Range window_cells(const WindowAxis& axis, const Range& outs) {
  return {outs.begin * axis.stride - axis.padding,
          (outs.end - 1) * axis.stride - axis.padding + axis.size};
}

// The taps by which outputs in `outs` read the cell.
[[nodiscard]] inline MetTaps met_taps(const WindowAxis& axis, Index cell, const Range& outs) {
  MetTaps met;
  for (Index tap = axis.size - 1; tap >= 0; --tap) {
    const Index distance = cell + axis.padding - tap;
    if (distance % axis.stride == 0 && distance >= outs.begin * axis.stride &&
        distance < outs.end * axis.stride) {
      met = {tap, met.count + 1, distance / axis.stride};
    }
  }
  return met;
}

}  // namespace tessera::engine
