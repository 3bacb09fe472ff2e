// Gradients of weights out of a max-pool's winners: see WinnerSum in lane_kernels.h.

// Of kRows rows of taps, each of kParts parts: whole vectors, and perhaps half of one.
template <class T, Index kParts, Index kRows>
struct TapSums {
  static constexpr Index kWhole = kParts / 2;
  static constexpr bool kHalf = kParts % 2 == 1;
  static constexpr Index kVectors = kWhole + (kHalf ? 1 : 0);

  Lanes<T, kLanes> whole[kRows][kWhole > 0 ? kWhole : 1]{};
  Lanes<T, kNarrowLanes> half[kRows]{};

  // Those of one output: `in_row` from row to row.
  [[gnu::always_inline]] void add(const T* taps, Index in_row, T gradient) {
#pragma GCC unroll 8
    for (Index r = 0; r < kRows; ++r) {
      const T* of_row = taps + r * in_row;
#pragma GCC unroll 2
      for (Index v = 0; v < kWhole; ++v) {
        add_product(whole[r][v], load_anywhere<kLanes>(of_row + v * kLanes), gradient);
      }
      if constexpr (kHalf) {
        add_product(half[r], load_anywhere<kNarrowLanes>(of_row + kWhole * kLanes), gradient);
      }
    }
  }

  [[gnu::always_inline]] void add_to(T* sums) const {
#pragma GCC unroll 8
    for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (Index v = 0; v < kWhole; ++v) {
        add_lanes(sums + (r * kVectors + v) * kLanes, whole[r][v]);
      }
      if constexpr (kHalf) {
        add_lanes(sums + (r * kVectors + kWhole) * kLanes, half[r]);
      }
    }
  }
};

// Of the rows of taps from `first` on. Few sums are kept twice, for windows in turn: each waits for the one before it.
template <class T, Index kParts, Index kRows>
void winner_rows(const WinnerSum<T>& job, Index first) {
  using Sums = TapSums<T, kParts, kRows>;
  constexpr Index kTurns = kRows * Sums::kVectors < at_once<T>(kTwiceSums) ? 2 : 1;
  Sums sums[kTurns];
  for (Index row = 0; row < job.rows; ++row) {
    const T* gradients = job.gradient + row * job.gradient_row;
    const unsigned char* winners = job.winners + row * job.winners_row;
    const T* in = job.in + row * job.in_windows + first * job.in_row;
    for (Index col = 0; col < job.cols; col += kTurns) {
#pragma GCC unroll 2
      for (Index turn = 0; turn < kTurns; ++turn) {
        const Index window = col + turn;
        if (turn > 0 && window == job.cols) {
          break;
        }
        const Index place = job.places[winners[window * job.winners_step]];
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
    sums[turn].add_to(job.sums + first * Sums::kVectors * kLanes);
  }
}

// Rows of taps whose sums the registers hold.
template <class T, Index kParts>
constexpr Index most_winner_rows() {
  constexpr Index kVectors = (kParts + 1) / 2;
  constexpr Index kRows = kArgmaxSums * kPartLanes<T> / (kVectors * kLanes);
  return kRows < 1 ? 1 : kRows < 5 ? kRows : 5;
}

// winner_rows for 1, 2, ... rows.
template <class T, Index kParts, class Counts>
struct WinnerRows;
template <class T, Index kParts, Index... kBefore>
struct WinnerRows<T, kParts, std::integer_sequence<Index, kBefore...>> {
  static constexpr void (*kOfCount[])(const WinnerSum<T>&, Index) = {winner_rows<T, kParts, kBefore + 1>...};
};

// In runs of rows as equal as can be.
template <class T, Index kParts>
void winner_runs(const WinnerSum<T>& job) {
  constexpr Index kMost = most_winner_rows<T, kParts>();
  using Counts = std::make_integer_sequence<Index, kMost>;
  Index first = 0;
  for (Index left = (job.tap_rows + kMost - 1) / kMost; left > 0; --left) {
    const Index count = (job.tap_rows - first + left - 1) / left;
    WinnerRows<T, kParts, Counts>::kOfCount[count - 1](job, first);
    first += count;
  }
}

template <class T>
void winner_sum_any(const WinnerSum<T>& job, Index parts) {
  if (parts == 1) {
    winner_runs<T, 1>(job);
  } else if (parts == 2) {
    winner_runs<T, 2>(job);
  } else if (parts == 3) {
    winner_runs<T, 3>(job);
  } else {
    winner_runs<T, 5>(job);
  }
}
