// Which taps of a convolution's windows meet a cell of its input, in one dimension: what backward
// passes gather.

#pragma once

#include <numeric>

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

// From a tap that meets a cell to the next one, and how far before that of the first the output of
// the next one is: one or more.
struct TapStep {
  Index taps = 1;
  Index outs = 1;
};
[[nodiscard]] inline TapStep tap_step(const WindowAxis& axis) {
  const Index both = std::gcd(axis.stride, axis.dilation);
  return {axis.stride / both, axis.dilation / both};
}

// A cell meets tap `tap` of output `out`, the tap that is one step further of the output one step
// before, and so on, `count` taps in all.
struct MetTaps {
  Index tap = 0;
  Index count = 0;
  Index out = 0;
};

// The cells that windows of outputs in `outs` have, in one dimension.
[[nodiscard]] inline Range window_cells(const WindowAxis& axis, const Range& outs) {
  return {outs.begin * axis.stride - axis.padding,
          (outs.end - 1) * axis.stride - axis.padding + axis.extent()};
}

// The taps by which outputs in `outs` read the cell.
[[nodiscard]] inline MetTaps met_taps(const WindowAxis& axis, Index cell, const Range& outs) {
  MetTaps met;
  for (Index tap = axis.size - 1; tap >= 0; --tap) {
    const Index distance = cell + axis.padding - tap * axis.dilation;
    if (distance % axis.stride == 0 && distance >= outs.begin * axis.stride &&
        distance < outs.end * axis.stride) {
      met = {tap, met.count + 1, distance / axis.stride};
    }
  }
  return met;
}

}  // namespace tessera::engine
