// The inner loops, compiled once for each vector width: a .cpp file per width names the target and a namespace and then
// includes this file. Nothing of the standard library in here: an inline function of it, compiled for a wide machine, could
// be the one that the linker keeps for all.

template <class T>
struct Vector {
  using Type [[gnu::vector_size(kLanes * sizeof(T)), gnu::aligned(kAlignment), gnu::may_alias]] = T;
};

template <class T>
using Lanes = typename Vector<T>::Type;

template <class T, Index kCount, Index kStep, Index kBlocks>
void sum_pixels(const WeightedSum<T>& job) {
  Lanes<T> sums[kBlocks][kCount] = {};
  const Index step = kStep == 0 ? job.in_step : kStep;
  for (Index i = 0; i < job.tap_count; ++i) {
    const T* in = job.in + job.taps[i].offset;
    const T* weights = job.taps[i].weights;
    for (Index t = 0; t < job.terms; ++t) {
      Lanes<T> weight[kBlocks];
#pragma GCC unroll 2
      for (Index block = 0; block < kBlocks; ++block) {
        weight[block] =
            *reinterpret_cast<const Lanes<T>*>(weights + block * job.weights_block + t * kLanes);
      }
      const T* pixels = in + job.offsets[t];
#pragma GCC unroll 16
      for (Index p = 0; p < kCount; ++p) {
        const T pixel = pixels[p * step];
#pragma GCC unroll 2
        for (Index block = 0; block < kBlocks; ++block) {
          sums[block][p] += weight[block] * pixel;
        }
      }
    }
  }
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 16
    for (Index p = 0; p < kCount; ++p) {
      *reinterpret_cast<Lanes<T>*>(job.sums + block * job.sums_block + p * kLanes) = sums[block][p];
    }
  }
}

template <class T, Index kCount, Index kStep>
void dispatch_pixels(const WeightedSum<T>& job, Index pixels, Index blocks) {
  if constexpr (kCount > 0) {
    if (pixels != kCount) {
      dispatch_pixels<T, kCount - 1, kStep>(job, pixels, blocks);
    } else if (blocks == 1) {
      sum_pixels<T, kCount, kStep, 1>(job);
    } else {
      sum_pixels<T, kCount, kStep, kSumBlocks>(job);
    }
  }
}

template <class T>
void sum_any(const WeightedSum<T>& job, Index pixels, Index blocks) {
  if (job.in_step == kLanes) {
    dispatch_pixels<T, kDensePixels, kLanes>(job, pixels, blocks);
  } else {
    dispatch_pixels<T, kPixels, 0>(job, pixels, blocks);
  }
}

template <class T, Index kCount, Index kBlocks>
void outer_terms(const OuterSum<T>& job) {
  Lanes<T> sums[kBlocks][kCount];
  Index offset[kCount];
#pragma GCC unroll 8
  for (Index t = 0; t < kCount; ++t) {
    offset[t] = job.offsets[t];
#pragma GCC unroll 2
    for (Index block = 0; block < kBlocks; ++block) {
      sums[block][t] =
          *reinterpret_cast<const Lanes<T>*>(job.sums + block * job.sums_block + t * kLanes);
    }
  }
  for (Index row = 0; row < job.rows; ++row) {
    const T* gradients = job.gradient + row * job.gradient_row;
    const T* in = job.in + row * job.in_row;
    for (Index col = 0; col < job.cols; ++col) {
      Lanes<T> gradient[kBlocks];
#pragma GCC unroll 2
      for (Index block = 0; block < kBlocks; ++block) {
        gradient[block] = *reinterpret_cast<const Lanes<T>*>(
            gradients + block * job.gradient_block + col * kLanes);
      }
#pragma GCC unroll 8
      for (Index t = 0; t < kCount; ++t) {
        const T pixel = in[offset[t]];
#pragma GCC unroll 2
        for (Index block = 0; block < kBlocks; ++block) {
          sums[block][t] += gradient[block] * pixel;
        }
      }
      in += job.in_step;
    }
  }
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 8
    for (Index t = 0; t < kCount; ++t) {
      *reinterpret_cast<Lanes<T>*>(job.sums + block * job.sums_block + t * kLanes) =
          sums[block][t];
    }
  }
}

template <class T, Index kCount>
void dispatch_terms(const OuterSum<T>& job, Index terms, Index blocks) {
  if constexpr (kCount > 0) {
    if (terms != kCount) {
      dispatch_terms<T, kCount - 1>(job, terms, blocks);
    } else if (blocks == 1) {
      outer_terms<T, kCount, 1>(job);
    } else {
      outer_terms<T, kCount, kSumBlocks>(job);
    }
  }
}

template <class T, Index kCount, Index kBlocks>
void product_pixels(const PixelProduct<T>& job) {
  Lanes<T> sums[kBlocks][kCount] = {};
  for (Index first = 0; first < job.channels; first += kLanes) {
    const T* pixels = job.in + first / kLanes * job.in_block;
    const T* weights = job.weights + first * kLanes;
    const Index channels = job.channels - first < kLanes ? job.channels - first : kLanes;
    for (Index c = 0; c < channels; ++c) {
      Lanes<T> weight[kBlocks];
#pragma GCC unroll 2
      for (Index block = 0; block < kBlocks; ++block) {
        weight[block] =
            *reinterpret_cast<const Lanes<T>*>(weights + block * job.weights_block + c * kLanes);
      }
#pragma GCC unroll 16
      for (Index p = 0; p < kCount; ++p) {
        const T pixel = pixels[p * kLanes + c];
#pragma GCC unroll 2
        for (Index block = 0; block < kBlocks; ++block) {
          sums[block][p] += weight[block] * pixel;
        }
      }
    }
  }
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 16
    for (Index p = 0; p < kCount; ++p) {
      *reinterpret_cast<Lanes<T>*>(job.sums + block * job.sums_block + p * kLanes) =
          sums[block][p];
    }
  }
}

template <class T, Index kCount>
void dispatch_product(const PixelProduct<T>& job, Index pixels, Index blocks) {
  if constexpr (kCount > 0) {
    if (pixels != kCount) {
      dispatch_product<T, kCount - 1>(job, pixels, blocks);
    } else if (blocks == kMostBlocks) {
      product_pixels<T, kCount, kMostBlocks>(job);
    } else {
      product_pixels<T, kCount, 1>(job);
    }
  }
}

template <class T, Index kBlocks>
void product_weights(const WeightProduct<T>& job) {
  Lanes<T> sums[kBlocks][kProductChannels];
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 8
    for (Index c = 0; c < kProductChannels; ++c) {
      const T* before = job.sums + block * job.sums_block + c * kLanes;
      sums[block][c] = job.assign ? Lanes<T>{} : *reinterpret_cast<const Lanes<T>*>(before);
    }
  }
  for (Index p = 0; p < job.pixels; ++p) {
    Lanes<T> gradient[kBlocks];
#pragma GCC unroll 2
    for (Index block = 0; block < kBlocks; ++block) {
      gradient[block] = *reinterpret_cast<const Lanes<T>*>(job.gradient +
                                                           block * job.gradient_block + p * kLanes);
    }
#pragma GCC unroll 8
    for (Index c = 0; c < kProductChannels; ++c) {
      const T pixel = job.in[p * kLanes + c];
#pragma GCC unroll 2
      for (Index block = 0; block < kBlocks; ++block) {
        sums[block][c] += gradient[block] * pixel;
      }
    }
  }
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 8
    for (Index c = 0; c < kProductChannels; ++c) {
      *reinterpret_cast<Lanes<T>*>(job.sums + block * job.sums_block + c * kLanes) =
          sums[block][c];
    }
  }
}

template <class T>
void product_weights_any(const WeightProduct<T>& job, Index blocks) {
  if (blocks == kMostBlocks) {
    product_weights<T, kMostBlocks>(job);
  } else {
    product_weights<T, 1>(job);
  }
}

#include "engine/ops/winograd_transforms.inl"
#include "engine/ops/winograd_filter_transforms.inl"

inline Index pixels_for(Index in_step) { return in_step == kLanes ? kDensePixels : kPixels; }

template <class T>
constexpr LaneKernels<T> kernels_of_width() {
  LaneKernels<T> kernels{};
  kernels.sum_blocks = kSumBlocks;
  kernels.pixels_at_once = pixels_for;
  kernels.weighted_sum = sum_any<T>;
  kernels.outer_sum = dispatch_terms<T, kOuterTerms>;
  kernels.product_pixels = kProductPixels;
  kernels.pixel_product = dispatch_product<T, kProductPixels>;
  kernels.weight_product = product_weights_any<T>;
  kernels.transform_input[0] = transform_input<T, 2>;
  kernels.transform_input[1] = transform_input<T, 4>;
  kernels.transform_sums[0] = transform_sums<T, 2>;
  kernels.transform_sums[1] = transform_sums<T, 4>;
  kernels.transform_gradient[0] = transform_gradient<T, 2>;
  kernels.transform_gradient[1] = transform_gradient<T, 4>;
  kernels.transform_filters[0] = transform_filters<T, 2>;
  kernels.transform_filters[1] = transform_filters<T, 4>;
  kernels.transform_filter_gradients[0] = transform_filter_gradients<T, 2>;
  kernels.transform_filter_gradients[1] = transform_filter_gradients<T, 4>;
  return kernels;
}

const LaneKernels<float> kSingle = kernels_of_width<float>();
const LaneKernels<double> kDouble = kernels_of_width<double>();
