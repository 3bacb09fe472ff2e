// Products with rows of weights that lie in memory: as fast as these can be read.

// One of the machine's vectors, anywhere in memory.
template <class T>
struct RowPart {
  using Type [[gnu::vector_size(kVectorBytes), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};

template <class T>
constexpr Index kRowPart = kVectorBytes / static_cast<Index>(sizeof(T));

// Numbers of a cache line, and how many lines are fetched ahead of those at work.
template <class T>
constexpr Index kLineTerms = 64 / static_cast<Index>(sizeof(T));
constexpr Index kLinesAhead = 8;

// The terms from `begin` to `end`, whole squares, of kSquare rows: transposed in registers.
template <class T, Index kCount>
[[gnu::always_inline]] inline void add_squares(const RowSums<T>& job,
                                               const T* weights,
                                               Index begin,
                                               Index end,
                                               typename SquareRow<T>::Type (&sums)[kCount]) {
  using Row = typename SquareRow<T>::Type;
  for (Index t = begin; t < end; t += kSquare<T>) {
    Row rows[kSquare<T>];
#pragma GCC unroll 8
    for (Index r = 0; r < kSquare<T>; ++r) {
      rows[r] = *reinterpret_cast<const Row*>(weights + r * job.weights_row + t);
    }
    transpose_rows<T, kSquare<T> / 2>(rows);
#pragma GCC unroll 8
    for (Index i = 0; i < kSquare<T>; ++i) {
      const T* in = job.in + job.offsets[t + i];
#pragma GCC unroll 4
      for (Index p = 0; p < kCount; ++p) {
        sums[p] += rows[i] * in[p * job.in_step];
      }
    }
  }
}

// The first `terms`, whole squares, of kGroups * kSquare rows: a line of each at a time.
template <class T, Index kCount, Index kGroups>
void sum_squares(const RowSums<T>& job, Index first_row, Index terms) {
  using Row = typename SquareRow<T>::Type;
  const T* weights = job.weights + first_row * job.weights_row;
  Row sums[kGroups][kCount];
#pragma GCC unroll 2
  for (Index group = 0; group < kGroups; ++group) {
#pragma GCC unroll 4
    for (Index p = 0; p < kCount; ++p) {
      sums[group][p] = *reinterpret_cast<const Row*>(job.sums + p * kBlockChannels + first_row +
                                                     group * kSquare<T>);
    }
  }
  for (Index t = 0; t < terms; t += kLineTerms<T>) {
    const Index end = t + kLineTerms<T> < terms ? t + kLineTerms<T> : terms;
    const Index ahead = t + kLinesAhead * kLineTerms<T>;
    if (ahead < terms) {
      for (Index row = 0; row < kGroups * kSquare<T>; ++row) {
        __builtin_prefetch(weights + row * job.weights_row + ahead);
      }
    }
#pragma GCC unroll 2
    for (Index group = 0; group < kGroups; ++group) {
      add_squares<T, kCount>(
          job, weights + group * kSquare<T> * job.weights_row, t, end, sums[group]);
    }
  }
#pragma GCC unroll 2
  for (Index group = 0; group < kGroups; ++group) {
#pragma GCC unroll 4
    for (Index p = 0; p < kCount; ++p) {
      *reinterpret_cast<Row*>(job.sums + p * kBlockChannels + first_row + group * kSquare<T>) =
          sums[group][p];
    }
  }
}

// Terms of one row, in the same order.
template <class T>
void sum_row(const RowSums<T>& job, Index row, Index first_term, Index pixels) {
  const T* weights = job.weights + row * job.weights_row;
  for (Index p = 0; p < pixels; ++p) {
    T sum = job.sums[p * kBlockChannels + row];
    for (Index t = first_term; t < job.terms; ++t) {
      sum += weights[t] * job.in[p * job.in_step + job.offsets[t]];
    }
    job.sums[p * kBlockChannels + row] = sum;
  }
}

template <class T, Index kCount>
void row_sums_of(const RowSums<T>& job, Index rows) {
  const Index terms = job.terms / kSquare<T> * kSquare<T>;
  Index row = 0;
  for (; row + 2 * kSquare<T> <= rows; row += 2 * kSquare<T>) {
    sum_squares<T, kCount, 2>(job, row, terms);
  }
  for (; row + kSquare<T> <= rows; row += kSquare<T>) {
    sum_squares<T, kCount, 1>(job, row, terms);
  }
  for (Index r = 0; r < rows; ++r) {
    sum_row(job, r, r < row ? terms : 0, kCount);
  }
}

template <class T>
void row_sums_any(const RowSums<T>& job, Index rows, Index pixels) {
  constexpr void (*kOfCount[])(const RowSums<T>&, Index) = {
      row_sums_of<T, 1>, row_sums_of<T, 2>, row_sums_of<T, 3>, row_sums_of<T, 4>};
  kOfCount[pixels - 1](job, rows);
}

// Rows that meet one pixel.
template <class T, Index kRows>
void add_rows(const ColumnSums<T>& job, const T* weights, const T (&factors)[kRows], T* sums) {
  using Part = typename RowPart<T>::Type;
  Index t = 0;
  for (; t + kRowPart<T> <= job.terms; t += kRowPart<T>) {
    Part sum = *reinterpret_cast<const Part*>(sums + t);
#pragma GCC unroll 4
    for (Index row = 0; row < kRows; ++row) {
      sum += *reinterpret_cast<const Part*>(weights + row * job.weights_row + t) * factors[row];
    }
    *reinterpret_cast<Part*>(sums + t) = sum;
  }
  for (; t < job.terms; ++t) {
    T sum = sums[t];
    for (Index row = 0; row < kRows; ++row) {
      sum += weights[row * job.weights_row + t] * factors[row];
    }
    sums[t] = sum;
  }
}

// kRows rows from `row` on meet all pixels. As many after them as `ahead` says are fetched first.
template <class T, Index kRows>
void meet_rows(const ColumnSums<T>& job, Index row, Index ahead, Index pixels) {
  const T* weights = job.weights + row * job.weights_row;
  for (Index next = kRows; next < kRows + ahead; ++next) {
    for (Index t = 0; t < job.terms; t += kLineTerms<T>) {
      __builtin_prefetch(weights + next * job.weights_row + t);
    }
  }
  for (Index p = 0; p < pixels; ++p) {
    T factors[kRows];
    for (Index i = 0; i < kRows; ++i) {
      factors[i] = job.in[p * job.in_step + job.offsets[row + i]];
    }
    add_rows<T, kRows>(job, weights, factors, job.sums + p * job.sums_step);
  }
}

template <class T>
void column_sums_any(const ColumnSums<T>& job, Index rows, Index pixels) {
  constexpr Index kRows = 4;  // at once
  Index row = 0;
  for (; row + kRows <= rows; row += kRows) {
    const Index left = rows - row - kRows;
    meet_rows<T, kRows>(job, row, left < kRows ? left : kRows, pixels);
  }
  for (; row < rows; ++row) {
    meet_rows<T, 1>(job, row, 0, pixels);
  }
}

// What the pixels add to one row. The next one, `next` elements from it, is fetched meanwhile.
template <class T, Index kCount>
void add_outer_row(const OuterRows<T>& job, Index row, Index next) {
  using Part = typename RowPart<T>::Type;
  T factors[kCount];
  for (Index p = 0; p < kCount; ++p) {
    factors[p] = job.gradient[p * job.gradient_step + job.offsets[row]];
  }
  T* weights = job.weights + row * job.weights_row;
  Index t = 0;
  for (; t + kRowPart<T> <= job.terms; t += kRowPart<T>) {
    __builtin_prefetch(weights + next + t, 1);
    Part sum{};
#pragma GCC unroll 4
    for (Index p = 0; p < kCount; ++p) {
      sum += *reinterpret_cast<const Part*>(job.in + p * job.in_step + t) * factors[p];
    }
    Part& to = *reinterpret_cast<Part*>(weights + t);
    to = to + sum;
  }
  for (; t < job.terms; ++t) {
    T sum = 0;
    for (Index p = 0; p < kCount; ++p) {
      sum += job.in[p * job.in_step + t] * factors[p];
    }
    weights[t] += sum;
  }
}

template <class T>
void outer_rows_any(const OuterRows<T>& job, Index rows, Index pixels) {
  constexpr void (*kOfCount[])(const OuterRows<T>&, Index, Index) = {
      add_outer_row<T, 1>, add_outer_row<T, 2>, add_outer_row<T, 3>, add_outer_row<T, 4>};
  for (Index row = 0; row < rows; ++row) {
    kOfCount[pixels - 1](job, row, row + 1 < rows ? job.weights_row : 0);
  }
}
