// Winograd's transforms of F(2x2, 3x3) and F(4x4, 3x3) (Lavin, Gray 2016), interpolation at 0, 1,
// -1 (and 2, -2). Each is a transform of a line, applied to the columns and then to the rows of a
// tile.

// B^T: a line of a window of the input.
template <class V>
[[gnu::always_inline]] inline void input_line(const V (&in)[4], V (&out)[4]) {
  out[0] = in[0] - in[2];
  out[1] = in[1] + in[2];
  out[2] = in[2] - in[1];
  out[3] = in[1] - in[3];
}

template <class V>
[[gnu::always_inline]] inline void input_line(const V (&in)[6], V (&out)[6]) {
  const V even = in[4] - 4 * in[2];
  const V odd = in[3] - 4 * in[1];
  const V even2 = in[4] - in[2];
  const V odd2 = 2 * (in[3] - in[1]);
  out[0] = 4 * in[0] - 5 * in[2] + in[4];
  out[1] = even + odd;
  out[2] = even - odd;
  out[3] = even2 + odd2;
  out[4] = even2 - odd2;
  out[5] = 4 * in[1] - 5 * in[3] + in[5];
}

// A^T: a line of positions to a line of outputs.
template <class V>
[[gnu::always_inline]] inline void sums_line(const V (&in)[4], V (&out)[2]) {
  out[0] = in[0] + in[1] + in[2];
  out[1] = in[1] - in[2] - in[3];
}

template <class V>
[[gnu::always_inline]] inline void sums_line(const V (&in)[6], V (&out)[4]) {
  const V plus = in[1] + in[2];
  const V minus = in[1] - in[2];
  const V plus2 = in[3] + in[4];
  const V minus2 = in[3] - in[4];
  out[0] = in[0] + plus + plus2;
  out[1] = minus + 2 * minus2;
  out[2] = plus + 4 * plus2;
  out[3] = minus + 8 * minus2 + in[5];
}

// A: the transpose of the last, for a line of gradients of outputs.
template <class V>
[[gnu::always_inline]] inline void gradient_line(const V (&in)[2], V (&out)[4]) {
  out[0] = in[0];
  out[1] = in[0] + in[1];
  out[2] = in[0] - in[1];
  out[3] = -in[1];
}

template <class V>
[[gnu::always_inline]] inline void gradient_line(const V (&in)[4], V (&out)[6]) {
  const V even = in[0] + in[2];
  const V odd = in[1] + in[3];
  const V even2 = in[0] + 4 * in[2];
  const V odd2 = 2 * in[1] + 8 * in[3];
  out[0] = in[0];
  out[1] = even + odd;
  out[2] = even - odd;
  out[3] = even2 + odd2;
  out[4] = even2 - odd2;
  out[5] = in[3];
}

// G: a line of a filter. The factors are given in T, so that double stays double.
template <class T, class V>
[[gnu::always_inline]] inline void weights_line(const V (&in)[3], V (&out)[4]) {
  const V outer = T(0.5) * (in[0] + in[2]);
  const V inner = T(0.5) * in[1];
  out[0] = in[0];
  out[1] = outer + inner;
  out[2] = outer - inner;
  out[3] = in[2];
}

template <class T, class V>
[[gnu::always_inline]] inline void weights_line(const V (&in)[3], V (&out)[6]) {
  const V outer = (in[0] + in[2]) * (T(-1) / T(6));
  const V inner = in[1] * (T(-1) / T(6));
  const V outer2 = in[0] * (T(1) / T(24)) + in[2] * (T(1) / T(6));
  const V inner2 = in[1] * (T(1) / T(12));
  out[0] = T(0.25) * in[0];
  out[1] = outer + inner;
  out[2] = outer - inner;
  out[3] = outer2 + inner2;
  out[4] = outer2 - inner2;
  out[5] = in[2];
}

// G^T: the transpose, for gradients of a filter.
template <class T, class V>
[[gnu::always_inline]] inline void weight_gradient_line(const V (&in)[4], V (&out)[3]) {
  out[0] = in[0] + T(0.5) * (in[1] + in[2]);
  out[1] = T(0.5) * (in[1] - in[2]);
  out[2] = T(0.5) * (in[1] + in[2]) + in[3];
}

template <class T, class V>
[[gnu::always_inline]] inline void weight_gradient_line(const V (&in)[6], V (&out)[3]) {
  const V plus = (in[1] + in[2]) * (T(-1) / T(6));
  const V minus = (in[1] - in[2]) * (T(-1) / T(6));
  const V plus2 = in[3] + in[4];
  const V minus2 = in[3] - in[4];
  out[0] = T(0.25) * in[0] + plus + plus2 * (T(1) / T(24));
  out[1] = minus + minus2 * (T(1) / T(12));
  out[2] = plus + plus2 * (T(1) / T(6)) + in[5];
}

// Applies `line` to the columns and then to the rows of a square.
template <Index kFrom, Index kTo, class V, class Line>
[[gnu::always_inline]] inline void transform_square(const V (&in)[kFrom * kFrom],
                                                    V (&out)[kTo * kTo],
                                                    Line line) {
  V between[kTo * kFrom];
#pragma GCC unroll 8
  for (Index col = 0; col < kFrom; ++col) {
    V from[kFrom];
    V to[kTo];
#pragma GCC unroll 8
    for (Index row = 0; row < kFrom; ++row) {
      from[row] = in[row * kFrom + col];
    }
    line(from, to);
#pragma GCC unroll 8
    for (Index row = 0; row < kTo; ++row) {
      between[row * kFrom + col] = to[row];
    }
  }
#pragma GCC unroll 8
  for (Index row = 0; row < kTo; ++row) {
    V from[kFrom];
    V to[kTo];
#pragma GCC unroll 8
    for (Index col = 0; col < kFrom; ++col) {
      from[col] = between[row * kFrom + col];
    }
    line(from, to);
#pragma GCC unroll 8
    for (Index col = 0; col < kTo; ++col) {
      out[row * kTo + col] = to[col];
    }
  }
}

// Calls visit(tile, lane) for each of the machine's vectors of each tile.
template <class T, class Visit>
[[gnu::always_inline]] inline void for_each_part(Index tiles, Visit visit) {
  for (Index tile = 0; tile < tiles; ++tile) {
    for (Index lane = 0; lane < kBlockChannels; lane += kVectorElements<T>) {
      visit(tile, lane);
    }
  }
}

// Squares of a run touch as many rows at once as they have, which is more than the machine's own
// prefetching follows: asks for the cells of the square two tiles further on, to read them or to
// write. Its first kKnown columns were asked for with the tile before.
template <class T, Index kSquare, Index kKnown, bool kWrite, class Job>
[[gnu::always_inline]] inline void prefetch_square(const Job& job, Index tile, Index lane) {
  constexpr Index kAhead = 2;
  constexpr Index kLine = 64;  // bytes of the cache
  if (lane * static_cast<Index>(sizeof(T)) % kLine != 0 || tile + kAhead >= job.tiles) {
    return;
  }
  const T* cells = job.cells + (tile + kAhead) * job.tile_step + lane;
#pragma GCC unroll 8
  for (Index row = 0; row < kSquare; ++row) {
#pragma GCC unroll 8
    for (Index col = kKnown; col < kSquare; ++col) {
      __builtin_prefetch(cells + row * job.row_step + col * kBlockChannels, kWrite ? 1 : 0);
    }
  }
}

// The cells of a square; 0 for those outside `inside`.
template <class T, Index kSide>
[[gnu::always_inline]] inline void load_square(const T* cells,
                                               Index row_step,
                                               const TileCells& inside,
                                               VectorPart<T> (&square)[kSide * kSide]) {
  if (inside.all(kSide)) {
#pragma GCC unroll 8
    for (Index row = 0; row < kSide; ++row) {
#pragma GCC unroll 8
      for (Index col = 0; col < kSide; ++col) {
        square[row * kSide + col] = load_part(cells + row * row_step + col * kBlockChannels);
      }
    }
    return;
  }
  for (Index row = 0; row < kSide; ++row) {
    const bool row_inside = row >= inside.row_begin && row < inside.row_end;
    for (Index col = 0; col < kSide; ++col) {
      const bool cell_inside = row_inside && col >= inside.col_begin && col < inside.col_end;
      square[row * kSide + col] =
          cell_inside ? load_part(cells + row * row_step + col * kBlockChannels) : VectorPart<T>{};
    }
  }
}

template <class T, Index kCount>
[[gnu::always_inline]] inline void load_positions(const T* from,
                                                  Index step,
                                                  VectorPart<T> (&positions)[kCount]) {
#pragma GCC unroll 36
  for (Index i = 0; i < kCount; ++i) {
    positions[i] = load_part(from + i * step);
  }
}

template <class T, Index kCount>
[[gnu::always_inline]] inline void store_positions(const VectorPart<T> (&positions)[kCount],
                                                   T* to,
                                                   Index step) {
#pragma GCC unroll 36
  for (Index i = 0; i < kCount; ++i) {
    store_part(to + i * step, positions[i]);
  }
}

template <class T, Index kSide>
void transform_input(const SquareTransform<T>& job) {
  constexpr Index kWindow = kSide + 2;
  for_each_part<T>(job.tiles, [&](Index tile, Index lane) __attribute__((always_inline)) {
    VectorPart<T> window[kWindow * kWindow];
    VectorPart<T> positions[kWindow * kWindow];
    prefetch_square<T, kWindow, kWindow - kSide, false>(job, tile, lane);
    load_square<T, kWindow>(
        job.cells + tile * job.tile_step + lane, job.row_step, job.inside, window);
    transform_square<kWindow, kWindow>(
        window, positions, [](const auto& in, auto& out) { input_line(in, out); });
    store_positions(positions, job.positions + tile * kBlockChannels + lane, job.position_step);
  });
}

template <class T, Index kSide>
void transform_gradient(const SquareTransform<T>& job) {
  constexpr Index kWindow = kSide + 2;
  for_each_part<T>(job.tiles, [&](Index tile, Index lane) __attribute__((always_inline)) {
    VectorPart<T> square[kSide * kSide];
    VectorPart<T> positions[kWindow * kWindow];
    prefetch_square<T, kSide, 0, false>(job, tile, lane);
    load_square<T, kSide>(
        job.cells + tile * job.tile_step + lane, job.row_step, job.inside, square);
    transform_square<kSide, kWindow>(
        square, positions, [](const auto& in, auto& out) { gradient_line(in, out); });
    store_positions(positions, job.positions + tile * kBlockChannels + lane, job.position_step);
  });
}

template <class T, Index kSide, bool kAdd>
[[gnu::always_inline]] inline void store_square(const VectorPart<T> (&square)[kSide * kSide],
                                                const SumTransform<T>& job,
                                                const VectorPart<T>& bias,
                                                T* cells) {
  const auto store = [](T* cell, const VectorPart<T>& sum) {
    store_part(cell, kAdd ? load_part(cell) + sum : sum);
  };
  if (job.inside.all(kSide)) {
#pragma GCC unroll 8
    for (Index row = 0; row < kSide; ++row) {
#pragma GCC unroll 8
      for (Index col = 0; col < kSide; ++col) {
        store(cells + row * job.row_step + col * kBlockChannels, square[row * kSide + col] + bias);
      }
    }
    return;
  }
  for (Index row = job.inside.row_begin; row < job.inside.row_end; ++row) {
    for (Index col = job.inside.col_begin; col < job.inside.col_end; ++col) {
      store(cells + row * job.row_step + col * kBlockChannels, square[row * kSide + col] + bias);
    }
  }
}

template <class T, Index kSide>
void transform_sums(const SumTransform<T>& job) {
  constexpr Index kWindow = kSide + 2;
  for_each_part<T>(job.tiles, [&](Index tile, Index lane) __attribute__((always_inline)) {
    VectorPart<T> positions[kWindow * kWindow];
    VectorPart<T> square[kSide * kSide];
    prefetch_square<T, kSide, 0, true>(job, tile, lane);
    load_positions(job.positions + tile * kBlockChannels + lane, job.position_step, positions);
    transform_square<kWindow, kSide>(
        positions, square, [](const auto& in, auto& out) { sums_line(in, out); });
    const VectorPart<T> bias = job.bias == nullptr ? VectorPart<T>{} : load_part(job.bias + lane);
    T* cells = job.cells + tile * job.tile_step + lane;
    if (job.add) {
      store_square<T, kSide, true>(square, job, bias, cells);
    } else {
      store_square<T, kSide, false>(square, job, bias, cells);
    }
  });
}
