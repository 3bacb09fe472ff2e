// Gradients of weights from a max-pool's argmax: see ArgmaxSum in block_kernels.h.

// Of kRows rows of taps, each of kParts parts: whole vectors, and perhaps half of one.
template <class T, Index kParts, Index kRows>
struct TapSums {
  static constexpr Index kWhole = kParts / 2;
  static constexpr bool kHalf = kParts % 2 == 1;
  static constexpr Index kVectors = kWhole + (kHalf ? 1 : 0);

  RegisterTile<T, kBlockChannels> whole[kRows][kWhole > 0 ? kWhole : 1]{};
  RegisterTile<T, kNarrowChannels> half[kRows]{};

  // Those of one output: `in_row` from row to row.
  [[gnu::always_inline]] void add(const T* taps, Index in_row, T gradient) {
#pragma GCC unroll 8
    for (Index r = 0; r < kRows; ++r) {
      const T* of_row = taps + r * in_row;
#pragma GCC unroll 2
      for (Index v = 0; v < kWhole; ++v) {
        add_product(
            whole[r][v], load_anywhere<kBlockChannels>(of_row + v * kBlockChannels), gradient);
      }
      if constexpr (kHalf) {
        add_product(
            half[r], load_anywhere<kNarrowChannels>(of_row + kWhole * kBlockChannels), gradient);
      }
    }
  }

  [[gnu::always_inline]] void add_to(T* sums) const {
#pragma GCC unroll 8
    for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (Index v = 0; v < kWhole; ++v) {
        add_register_tile(sums + (r * kVectors + v) * kBlockChannels, whole[r][v]);
      }
      if constexpr (kHalf) {
        add_register_tile(sums + (r * kVectors + kWhole) * kBlockChannels, half[r]);
      }
    }
  }
};

// Of the rows of taps from `first` on. Few sums are kept twice, for windows in turn: each waits for
// the one before it.
template <class T, Index kParts, Index kRows>
void argmax_rows(const ArgmaxSum<T>& job, Index first) {
  using Sums = TapSums<T, kParts, kRows>;
  constexpr Index kTurns = kRows * Sums::kVectors < at_once<T>(kTwiceSums) ? 2 : 1;
  Sums sums[kTurns];
  for (Index row = 0; row < job.rows; ++row) {
    const T* gradients = job.gradient + row * job.gradient_row;
    const unsigned char* argmax = job.argmax + row * job.argmax_row_step;
    const T* in = job.in + row * job.in_windows + first * job.in_row;
    for (Index col = 0; col < job.cols; col += kTurns) {
#pragma GCC unroll 2
      for (Index turn = 0; turn < kTurns; ++turn) {
        const Index window = col + turn;
        if (turn > 0 && window == job.cols) {
          break;
        }
        const Index place = job.places[argmax[window * job.argmax_step]];
        if (place < 0) {
          continue;
        }
        const T gradient = gradients[window * job.gradient_step];
        sums[turn].add(in + place + window * job.in_window, job.in_row, gradient);
      }
    }
  }
#pragma GCC unroll 2
  for (Index turn = 0; turn < kTurns; ++turn) {
    sums[turn].add_to(job.sums + first * Sums::kVectors * kBlockChannels);
  }
}

// Rows of taps whose sums the registers hold.
template <class T, Index kParts>
constexpr Index most_argmax_rows() {
  constexpr Index kVectors = (kParts + 1) / 2;
  constexpr Index kRows = kArgmaxSums * kVectorElements<T> / (kVectors * kBlockChannels);
  return kRows < 1 ? 1 : kRows < 5 ? kRows : 5;
}

// argmax_rows for 1, 2, ... rows.
template <class T, Index kParts, class Counts>
struct ArgmaxRows;
template <class T, Index kParts, Index... kBefore>
struct ArgmaxRows<T, kParts, std::integer_sequence<Index, kBefore...>> {
  static constexpr void (*kOfCount[])(const ArgmaxSum<T>&,
                                      Index) = {argmax_rows<T, kParts, kBefore + 1>...};
};

// In runs of rows as equal as can be.
template <class T, Index kParts>
void argmax_runs(const ArgmaxSum<T>& job) {
  constexpr Index kMost = most_argmax_rows<T, kParts>();
  using Counts = std::make_integer_sequence<Index, kMost>;
  Index first = 0;
  for (Index left = (job.tap_rows + kMost - 1) / kMost; left > 0; --left) {
    const Index count = (job.tap_rows - first + left - 1) / left;
    ArgmaxRows<T, kParts, Counts>::kOfCount[count - 1](job, first);
    first += count;
  }
}

template <class T>
void argmax_sum_any(const ArgmaxSum<T>& job, Index parts) {
  if (parts == 1) {
    argmax_runs<T, 1>(job);
  } else if (parts == 2) {
    argmax_runs<T, 2>(job);
  } else if (parts == 3) {
    argmax_runs<T, 3>(job);
  } else {
    argmax_runs<T, 5>(job);
  }
}
