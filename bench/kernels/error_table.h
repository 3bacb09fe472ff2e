// How far single precision is from double, kernel by kernel.

#pragma once

#include "bench/kernels/convolution_case.h"

namespace tessera::bench {

// A Markdown table: for each convolution and pass the relative error of each of our kernels, the
// length of the difference from a direct sum in double precision by the length of that sum.
[[nodiscard]] std::string error_table(const std::vector<ConvolutionCase>& cases);

}  // namespace tessera::bench
