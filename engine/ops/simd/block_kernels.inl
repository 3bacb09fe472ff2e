// The inner loops, compiled once for each vector width: a .cpp file per width names the target and
// a namespace and then includes this file. Nothing of the standard library in here: an inline
// function of it, compiled for a wide machine, could be the one that the linker keeps for all.

#include "engine/ops/simd/register_tile.inl"

// So many sums of T at once, where the registers hold `singles` in single precision.
template <class T>
constexpr Index at_once(Index singles) {
  return sizeof(T) == sizeof(float) ? singles : singles / kDoubleShare;
}

// Sums of pixels, or what they start with: `step` from pixel to pixel.
template <class T, Index kWidth, Index kCount, Index kBlocks>
[[gnu::always_inline]] inline void load_sums(const T* from,
                                             Index step,
                                             Index block_step,
                                             RegisterTile<T, kWidth> (&sums)[kBlocks][kCount]) {
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
    const T* pixel = from + block * block_step;
#pragma GCC unroll 16
    for (Index p = 0; p < kCount; ++p) {
      sums[block][p] = load_register_tile<kWidth>(pixel);
      pixel += step;
    }
  }
}

template <class T, Index kWidth, Index kCount, Index kBlocks>
[[gnu::always_inline]] inline void store_sums(
    const RegisterTile<T, kWidth> (&sums)[kBlocks][kCount], Index step, Index block_step, T* to) {
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
    T* pixel = to + block * block_step;
#pragma GCC unroll 16
    for (Index p = 0; p < kCount; ++p) {
      store_register_tile(pixel, sums[block][p]);
      pixel += step;
    }
  }
}

// Pixel p of those at `pixels`. Steps that are not known are multiplied by few different numbers,
// which the registers hold.
template <class T, Index kStep>
[[gnu::always_inline]] inline T pixel_at(const T* pixels, Index p, Index step) {
  constexpr Index kNear = 5;
  if constexpr (kStep != 0) {
    return pixels[p * kStep];
  } else {
    return (pixels + p / kNear * (kNear * step))[p % kNear * step];
  }
}

// Steps between pixels that are not kStep are job.in_step: kStep is 0.
template <class T, Index kWidth, Index kCount, Index kStep, Index kBlocks>
void sum_pixels(const WeightedSum<T>& job) {
  RegisterTile<T, kWidth> sums[kBlocks][kCount];
  if (job.start == nullptr) {
    load_sums(job.sums, job.sums_step, job.sums_block, sums);
  } else {
    load_sums(job.start, 0, kBlockChannels, sums);
  }
  // Few terms, of few channels, are summed before the next sums have come from memory.
  if constexpr (kStep == 0) {
#pragma GCC unroll 2
    for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 16
      for (Index p = 0; p < kCount; ++p) {
        __builtin_prefetch(job.sums + block * job.sums_block + (kCount + p) * job.sums_step, 1);
      }
    }
  }
  const Index step = job.in_step;
  for (Index i = 0; i < job.tap_count; ++i) {
    const T* in = job.in + job.taps[i].offset;
    const T* weights = job.taps[i].weights;
    for (Index t = 0; t < job.terms; ++t) {
      RegisterTile<T, kWidth> weight[kBlocks];
#pragma GCC unroll 2
      for (Index block = 0; block < kBlocks; ++block) {
        weight[block] =
            load_register_tile<kWidth>(weights + block * job.weights_block + t * kBlockChannels);
      }
      const T* pixels = in + job.offsets[t];
      // Each term asks for one of the next pixels: those of large maps come from memory.
      if constexpr (kStep == kBlockChannels) {
        __builtin_prefetch(pixels + (kCount + t % kBlockChannels) * kStep);
      }
#pragma GCC unroll 16
      for (Index p = 0; p < kCount; ++p) {
        const T pixel = pixel_at<T, kStep>(pixels, p, step);
#pragma GCC unroll 2
        for (Index block = 0; block < kBlocks; ++block) {
          add_product(sums[block][p], weight[block], pixel);
        }
      }
    }
  }
  store_sums(sums, job.sums_step, job.sums_block, job.sums);
}

// sum_pixels for 1, 2, ... pixels, each of one block and of kSumBlocks.
template <class T, Index kStep, class Counts>
struct SumPixels;
template <class T, Index kStep, Index... kBefore>
struct SumPixels<T, kStep, std::integer_sequence<Index, kBefore...>> {
  static constexpr void (*kOfCount[])(const WeightedSum<T>&) = {
      sum_pixels<T, kBlockChannels, kBefore / 2 + 1, kStep, kBefore % 2 == 0 ? 1 : kSumBlocks>...};
};

template <class T>
void sum_any(const WeightedSum<T>& job, Index pixels, Index blocks) {
  using Counts = std::make_integer_sequence<Index, 2 * at_once<T>(kPixels)>;
  const Index which = 2 * (pixels - 1) + (blocks > 1 ? 1 : 0);
  if (job.in_step == kBlockChannels) {
    SumPixels<T, kBlockChannels, Counts>::kOfCount[which](job);
  } else {
    SumPixels<T, 0, Counts>::kOfCount[which](job);
  }
}

template <class T, Index kStep, class Counts>
struct NarrowSums;
template <class T, Index kStep, Index... kBefore>
struct NarrowSums<T, kStep, std::integer_sequence<Index, kBefore...>> {
  static constexpr void (*kOfCount[])(const WeightedSum<T>&) = {
      sum_pixels<T, kNarrowChannels, kBefore + 1, kStep, 1>...};
};

template <class T>
void narrow_sum_any(const WeightedSum<T>& job, Index pixels) {
  using Counts = std::make_integer_sequence<Index, at_once<T>(kNarrowPixels)>;
  if (job.in_step == kBlockChannels) {
    NarrowSums<T, kBlockChannels, Counts>::kOfCount[pixels - 1](job);
  } else {
    NarrowSums<T, 0, Counts>::kOfCount[pixels - 1](job);
  }
}

// Cell by cell of the row, so that each stays in registers.
template <class T>
void add_windows_any(const WindowSums<T>& windows) {
  const WindowSums<T> job = windows;  // which no store can change
  const Index to_next =
      job.sums_step - job.stride * job.cell_step;  // the same cell's, one window on
  Index first = 0;  // of the windows that have the cell
  Index end = 0;
  for (Index cell = job.first; cell < job.end; ++cell) {
    while (first * job.stride + job.size <= cell) {
      ++first;
    }
    while (end < job.pixels && end * job.stride <= cell) {
      ++end;
    }
    T* const to = job.cells + (cell - job.first) * kNarrowChannels;
    RegisterTile<T, kNarrowChannels> sum = load_register_tile<kNarrowChannels>(to);
    const T* term = job.sums + first * to_next + cell * job.cell_step;
    for (Index p = first; p < end; ++p) {
      add_register_tile(sum, load_anywhere<kNarrowChannels>(term));
      term += to_next;
    }
    store_register_tile(to, sum);
  }
}

// Squares of a matrix that are transposed in registers.
template <class T>
constexpr Index kSquare = kSquareBytes / static_cast<Index>(sizeof(T));

template <class T>
struct SquareRow {
  using Type [[gnu::vector_size(kSquareBytes), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};

// Swaps the upper right quarter of 2 kHalf x 2 kHalf squares with the lower left one; `upper` and
// `lower` are rows that are kHalf apart.
template <class T, Index kHalf, Index... kCol>
[[gnu::always_inline]] inline void swap_quarters(typename SquareRow<T>::Type& upper,
                                                 typename SquareRow<T>::Type& lower,
                                                 std::integer_sequence<Index, kCol...> /*cols*/) {
  constexpr Index kSide = sizeof...(kCol);
  const typename SquareRow<T>::Type before = upper;
  upper = __builtin_shufflevector(
      before, lower, ((kCol & kHalf) == 0 ? kCol : kSide + kCol - kHalf)...);
  lower = __builtin_shufflevector(
      before, lower, ((kCol & kHalf) == 0 ? kCol + kHalf : kSide + kCol)...);
}

template <class T, Index kHalf>
[[gnu::always_inline]] inline void transpose_rows(typename SquareRow<T>::Type* rows) {
  if constexpr (kHalf > 0) {
#pragma GCC unroll 8
    for (Index row = 0; row < kSquare<T>; ++row) {
      if ((row & kHalf) == 0) {
        swap_quarters<T, kHalf>(
            rows[row], rows[row + kHalf], std::make_integer_sequence<Index, kSquare<T>>());
      }
    }
    transpose_rows<T, kHalf / 2>(rows);
  }
}

template <class T, bool kAdd>
[[gnu::always_inline]] inline void transpose_square(const Transpose<T>& job, Index row, Index col) {
  using Row = typename SquareRow<T>::Type;
  Row rows[kSquare<T>];
#pragma GCC unroll 8
  for (Index r = 0; r < kSquare<T>; ++r) {
    rows[r] = *reinterpret_cast<const Row*>(job.from + (row + r) * job.from_step + col);
  }
  transpose_rows<T, kSquare<T> / 2>(rows);
#pragma GCC unroll 8
  for (Index c = 0; c < kSquare<T>; ++c) {
    Row& to = *reinterpret_cast<Row*>(job.to + (col + c) * job.to_step + row);
    to = kAdd ? to + rows[c] : rows[c];
  }
}

template <class T, bool kAdd>
void transpose_any(const Transpose<T>& job, Index rows, Index cols) {
  const Index whole_rows = rows / kSquare<T> * kSquare<T>;
  const Index whole_cols = cols / kSquare<T> * kSquare<T>;
  for (Index col = 0; col < whole_cols; col += kSquare<T>) {
    for (Index row = 0; row < whole_rows; row += kSquare<T>) {
      transpose_square<T, kAdd>(job, row, col);
    }
  }
  for (Index col = 0; col < cols; ++col) {
    for (Index row = col < whole_cols ? whole_rows : 0; row < rows; ++row) {
      T& to = job.to[col * job.to_step + row];
      const T from = job.from[row * job.from_step + col];
      to = kAdd ? to + from : from;
    }
  }
}

// Of kCount terms from the `first` on. Each run of output channels reads the input anew, often from
// memory: asks for what the next pixels, or the next piece, will read.
template <class T, Index kWidth, Index kCount, Index kBlocks>
void outer_terms(const OuterSum<T>& job, Index first) {
  constexpr Index kAhead = 3072;  // bytes
  T* to = job.sums + first * kBlockChannels;
  RegisterTile<T, kWidth> sums[kBlocks][kCount];
  Index offset[kCount];
#pragma GCC unroll 16
  for (Index t = 0; t < kCount; ++t) {
    offset[t] = job.offsets[first + t];
#pragma GCC unroll 2
    for (Index block = 0; block < kBlocks; ++block) {
      sums[block][t] = load_register_tile<kWidth>(to + block * job.sums_block + t * kBlockChannels);
    }
  }
  for (Index row = 0; row < job.rows; ++row) {
    const T* gradients = job.gradient + row * job.gradient_row;
    const T* in = job.in + row * job.in_row;
    for (Index col = 0; col < job.cols; ++col) {
      RegisterTile<T, kWidth> gradient[kBlocks];
#pragma GCC unroll 2
      for (Index block = 0; block < kBlocks; ++block) {
        gradient[block] =
            load_register_tile<kWidth>(gradients + block * job.gradient_block + col * kWidth);
      }
      __builtin_prefetch(in + offset[0] + kAhead / static_cast<Index>(sizeof(T)));
#pragma GCC unroll 16
      for (Index t = 0; t < kCount; ++t) {
        const T pixel = in[offset[t]];
#pragma GCC unroll 2
        for (Index block = 0; block < kBlocks; ++block) {
          add_product(sums[block][t], gradient[block], pixel);
        }
      }
      in += job.in_step;
    }
  }
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 16
    for (Index t = 0; t < kCount; ++t) {
      store_register_tile(to + block * job.sums_block + t * kBlockChannels, sums[block][t]);
    }
  }
}

// outer_terms for 1, 2, ... terms.
template <class T, Index kWidth, Index kBlocks, class Counts>
struct OuterTerms;
template <class T, Index kWidth, Index kBlocks, Index... kBefore>
struct OuterTerms<T, kWidth, kBlocks, std::integer_sequence<Index, kBefore...>> {
  static constexpr void (*kOfCount[])(const OuterSum<T>&, Index) = {
      outer_terms<T, kWidth, kBefore + 1, kBlocks>...};
};

// In runs as equal as can be of at most kMost terms, that the registers hold the sums of.
template <class T, Index kWidth, Index kBlocks, Index kMost>
void outer_runs(const OuterSum<T>& job, Index terms) {
  using Counts = std::make_integer_sequence<Index, kMost>;
  const Index runs = (terms + kMost - 1) / kMost;
  Index first = 0;
  for (Index left = runs; left > 0; --left) {
    const Index count = (terms - first + left - 1) / left;
    OuterTerms<T, kWidth, kBlocks, Counts>::kOfCount[count - 1](job, first);
    first += count;
  }
}

template <class T>
void outer_sum_any(const OuterSum<T>& job, Index terms, Index blocks) {
  if (blocks > 1) {
    outer_runs<T, kBlockChannels, kSumBlocks, at_once<T>(kTerms)>(job, terms);
  } else {
    outer_runs<T, kBlockChannels, 1, at_once<T>(kTerms * kSumBlocks)>(job, terms);
  }
}

template <class T>
void narrow_outer_sum_any(const OuterSum<T>& job, Index terms) {
  outer_runs<T, kNarrowChannels, 1, at_once<T>(2 * kTerms)>(job, terms);
}

template <class T, Index kCount, Index kBlocks>
void product_pixels(const PixelProduct<T>& job) {
  RegisterTile<T> sums[kBlocks][kCount]{};
  if (!job.assign) {
    load_sums(job.sums, kBlockChannels, job.sums_block, sums);
  }
  for (Index first = 0; first < job.channels; first += kBlockChannels) {
    const T* pixels = job.in + first / kBlockChannels * job.in_block;
    const T* weights = job.weights + first * kBlockChannels;
    const Index channels =
        job.channels - first < kBlockChannels ? job.channels - first : kBlockChannels;
    for (Index c = 0; c < channels; ++c) {
      RegisterTile<T> weight[kBlocks];
#pragma GCC unroll 2
      for (Index block = 0; block < kBlocks; ++block) {
        weight[block] =
            load_register_tile(weights + block * job.weights_block + c * kBlockChannels);
      }
#pragma GCC unroll 16
      for (Index p = 0; p < kCount; ++p) {
        const T pixel = pixels[p * kBlockChannels + c];
#pragma GCC unroll 2
        for (Index block = 0; block < kBlocks; ++block) {
          add_product(sums[block][p], weight[block], pixel);
        }
      }
    }
  }
  store_sums(sums, kBlockChannels, job.sums_block, job.sums);
}

// So many blocks that the registers hold the sums of.
template <class T, Index kCount>
void dispatch_product(PixelProduct<T> job, Index pixels, Index blocks) {
  if constexpr (kCount > 0) {
    if (pixels != kCount) {
      return dispatch_product<T, kCount - 1>(job, pixels, blocks);
    }
    for (; blocks >= kSumBlocks; blocks -= kSumBlocks) {
      product_pixels<T, kCount, kSumBlocks>(job);
      job.weights += kSumBlocks * job.weights_block;
      job.sums += kSumBlocks * job.sums_block;
    }
    for (; blocks > 0; --blocks) {
      product_pixels<T, kCount, 1>(job);
    }
  }
}

template <class T>
void pixel_product_any(const PixelProduct<T>& job, Index pixels, Index blocks) {
  dispatch_product<T, at_once<T>(kPixels)>(job, pixels, blocks);
}

template <class T, Index kBlocks>
void product_weights(const WeightProduct<T>& job) {
  constexpr Index kTermCount = at_once<T>(kProductTerms);
  RegisterTile<T> sums[kBlocks][kTermCount];
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 8
    for (Index c = 0; c < kTermCount; ++c) {
      sums[block][c] =
          job.assign ? RegisterTile<T>{}
                     : load_register_tile(job.sums + block * job.sums_block + c * kBlockChannels);
    }
  }
  for (Index p = 0; p < job.pixels; ++p) {
    RegisterTile<T> gradient[kBlocks];
#pragma GCC unroll 2
    for (Index block = 0; block < kBlocks; ++block) {
      gradient[block] =
          load_register_tile(job.gradient + block * job.gradient_block + p * kBlockChannels);
    }
#pragma GCC unroll 8
    for (Index c = 0; c < kTermCount; ++c) {
      const T pixel = job.in[p * kBlockChannels + c];
#pragma GCC unroll 2
      for (Index block = 0; block < kBlocks; ++block) {
        add_product(sums[block][c], gradient[block], pixel);
      }
    }
  }
#pragma GCC unroll 2
  for (Index block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 8
    for (Index c = 0; c < kTermCount; ++c) {
      store_register_tile(job.sums + block * job.sums_block + c * kBlockChannels, sums[block][c]);
    }
  }
}

template <class T>
void product_weights_any(const WeightProduct<T>& job, Index blocks) {
  for (Index channel = 0; channel < kProductChannels; channel += at_once<T>(kProductTerms)) {
    WeightProduct<T> part = job;
    part.in += channel;
    part.sums += channel * kBlockChannels;
    Index left = blocks;
    for (; left >= kSumBlocks; left -= kSumBlocks) {
      product_weights<T, kSumBlocks>(part);
      part.gradient += kSumBlocks * part.gradient_block;
      part.sums += kSumBlocks * part.sums_block;
    }
    for (; left > 0; --left) {
      product_weights<T, 1>(part);
    }
  }
}

#include "engine/ops/simd/plane_kernels.inl"
#include "engine/ops/simd/argmax_kernels.inl"
#include "engine/ops/simd/connected_rows.inl"
#include "engine/ops/simd/winograd_transforms.inl"
#include "engine/ops/simd/winograd_filter_transforms.inl"

template <class T>
constexpr BlockKernels<T> kernels_of_width() {
  BlockKernels<T> kernels{};
  kernels.sum_blocks = kSumBlocks;
  kernels.sum_pixels = at_once<T>(kPixels);
  kernels.weighted_sum = sum_any<T>;
  kernels.outer_sum = outer_sum_any<T>;
  kernels.narrow_pixels = at_once<T>(kNarrowPixels);
  kernels.narrow_sum = narrow_sum_any<T>;
  kernels.narrow_outer_sum = narrow_outer_sum_any<T>;
  kernels.add_windows = add_windows_any<T>;
  kernels.plane_filters = kNarrowChannels;
  kernels.plane_sum = plane_sum_any<T>;
  if constexpr (kVectorBytes >= kBlockChannels * static_cast<Index>(sizeof(float))) {
    kernels.plane_outer_sum = plane_outer_sum_any<T>;
  }
  kernels.argmax_sum = argmax_sum_any<T>;
  kernels.row_sums = row_sums_any<T>;
  kernels.column_sums = column_sums_any<T>;
  kernels.outer_rows = outer_rows_any<T>;
  kernels.transpose = transpose_any<T, false>;
  kernels.add_transposed = transpose_any<T, true>;
  kernels.product_pixels = at_once<T>(kPixels);
  kernels.pixel_product = pixel_product_any<T>;
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
