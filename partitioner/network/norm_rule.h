// How batch normalisation is computed: which variance, where what is added to it stands, and how
// running statistics follow. engine/ops/norm/batch_norm.h has the formulas.

#pragma once

#include <cstdint>

namespace tessera::partitioner {

enum class NormForm : std::uint8_t {
  PyTorch,  // (x - mean) / sqrt(biased variance + epsilon), and its derivative
  // Redmon's Darknet on a CPU: (x - mean) / (sqrt(unbiased variance) + 1e-6). Its backward pass is
  // not the derivative of that.
  Darknet,
};

struct NormRule {
  NormForm form = NormForm::PyTorch;
  double rate = 0.1;      // weight of the new batch in the running statistics
  double epsilon = 1e-5;  // of PyTorch's form; what Darknet adds is fixed

  friend bool operator==(const NormRule&, const NormRule&) = default;
};

inline constexpr NormRule kDarknetNorm{.form = NormForm::Darknet, .rate = 0.01};

}  // namespace tessera::partitioner
