// Rows in single precision for processors that start instructions in the order of the program:
// several cells at once, all read before any is written, for else each instruction waits for the
// one before. Rows of vectors side by side; what is left over, and all other rows, is for
// row_kernels.inl. The same bits: each cell is computed alike, and sums are in the order of cells.


constexpr Index kRowFloats = 4;

// Cells at once whose numbers, and constants of functions, the registers hold; 0 for activations
// that are computed one number at a time.
template <Kind kKind>
constexpr Index kCellsAtOnce = kKind == Kind::Other                           ? 0
                               : kKind == Kind::Mish || kKind == Kind::Gelu ? 2
                               : kKind > Kind::HardMish                     ? 3
                                                                            : 4;

// Calls run(first) for the kCount cells from each of `first` on, as far as there are whole runs of
// them; returns how many cells that are.
template <Index kCount, class Run>
[[gnu::always_inline]] inline Index for_each_run_of(Index cells, Run run) {
  Index first = 0;
  for (; first + kCount <= cells; first += kCount) {
    run(first);
  }
  return first;
}

// Calls run.operator()<V>(lane), which returns how many of a row's cells it has done, for vectors
// that together are the channels of a row. Returns the same; 0 where a row is not of such vectors,
// side by side.
template <class T, class Run>
[[gnu::always_inline]] inline Index for_each_lane(Index channels, bool side_by_side, Run run) {
  Index done = 0;
  if (side_by_side && (channels == 16 || channels == 8)) {
#pragma GCC unroll 1
    for (Index lane = 0; lane < channels; lane += kRowFloats) {
      done = run.template operator()<typename RowVector<T, kRowFloats>::Type>(lane);
    }
  }
  return done;
}

template <Kind kKind>
[[gnu::noinline]] Index normalize_at_once(const NormalizeRow<float>& given) {
  constexpr Index kCount = kCellsAtOnce<kKind>;
  if constexpr (kCount == 0) {
    return 0;
  } else {
    const NormalizeRow<float> row = given;  // which no store can change
    const bool side_by_side = row.x_step == row.channels && row.y_step == row.channels;
    return for_each_lane<float>(row.channels, side_by_side, [&]<class V>(Index lane) {
      const VectorNorms<float, V> norms(*row.norms, lane);
      return for_each_run_of<kCount>(row.cells, [&](Index first) __attribute__((always_inline)) {
        V values[kCount];
#pragma GCC unroll 4
        for (Index i = 0; i < kCount; ++i) {
          const float* x = row.x + (first + i) * row.x_step + lane;
          prefetch_row(x);
          values[i] = load_row<V>(x);
        }
#pragma GCC unroll 4
        for (Index i = 0; i < kCount; ++i) {
          values[i] = activated<float, kKind>(row.activation, norms.sum(norms.normal(values[i])));
        }
#pragma GCC unroll 4
        for (Index i = 0; i < kCount; ++i) {
          store_row(row.y + (first + i) * row.y_step + lane, values[i]);
        }
      });
    });
  }
}

void normalize_in_order(const NormalizeRow<float>& row) {
  NormalizeRow<float> rest = row;
  with_kind(row.activation, [&]<Kind kKind>() {
    const Index done = normalize_at_once<kKind>(row);
    rest.x += done * row.x_step;
    rest.y += done * row.y_step;
    rest.cells -= done;
    normalize_row<float, kKind>(rest);
  });
}

template <Kind kKind>
[[gnu::noinline]] Index gradient_statistics_at_once(const NormalizeGradientRow<float>& row,
                                  double* shift_sums,
                                  double* scale_sums,
                                  float* through) {
  // Beside the sums, the registers hold one cell of gelu's.
  constexpr Index kCount = kKind == Kind::Gelu ? 1 : kCellsAtOnce<kKind>;
  if constexpr (kCount == 0) {
    return 0;
  } else {
    const bool side_by_side = row.x_step == row.channels && row.gradient_step == row.channels;
    return for_each_lane<float>(row.channels, side_by_side, [&]<class V>(Index lane) {
      const VectorNorms<float, V> norms(*row.norms, lane);
      GradientStatistics<float, V> sums(shift_sums + lane, scale_sums + lane);
      const Index done =
          for_each_run_of<kCount>(row.cells, [&](Index first) __attribute__((always_inline)) {
            V normals[kCount];
            V gradients[kCount];
#pragma GCC unroll 4
            for (Index i = 0; i < kCount; ++i) {
              const float* x = row.x + (first + i) * row.x_step + lane;
              const float* gradient = row.gradient + (first + i) * row.gradient_step + lane;
              prefetch_row(x);
              prefetch_row(gradient);
              normals[i] = norms.normal(load_row<V>(x));
              gradients[i] = through_activation<float, kKind>(
                  row.activation, load_row<V>(gradient), norms.sum(normals[i]));
            }
#pragma GCC unroll 4
            for (Index i = 0; i < kCount; ++i) {
              sums.add(gradients[i], normals[i]);
            }
            if (kTakesExponential<kKind> && through != nullptr) {
#pragma GCC unroll 4
              for (Index i = 0; i < kCount; ++i) {
                store_row(through + (first + i) * row.gradient_step + lane, gradients[i]);
              }
            }
          });
      sums.store(shift_sums + lane, scale_sums + lane);
      return done;
    });
  }
}

void gradient_statistics_in_order(const NormalizeGradientRow<float>& row,
                                  double* shift,
                                  double* scale,
                                  float* through) {
  NormalizeGradientRow<float> rest = row;
  with_kind(row.activation, [&]<Kind kKind>() {
    const Index done = gradient_statistics_at_once<kKind>(row, shift, scale, through);
    rest.x += done * row.x_step;
    rest.gradient += done * row.gradient_step;
    rest.cells -= done;
    float* const left = through == nullptr ? nullptr : through + done * row.gradient_step;
    gradient_statistics_row<float, kKind>(rest, shift, scale, left);
  });
}

template <Kind kKind>
[[gnu::noinline]] Index normalize_gradient_at_once(const NormalizeGradientRow<float>& given,
                                 const BlockNorms<float>& by,
                                 float* to) {
  constexpr Index kCount = kCellsAtOnce<kKind>;
  if constexpr (kCount == 0) {
    return 0;
  } else {
    const NormalizeGradientRow<float> row = given;
    const bool side_by_side = row.x_step == row.channels && row.gradient_step == row.channels;
    return for_each_lane<float>(row.channels, side_by_side, [&]<class V>(Index lane) {
      const VectorNorms<float, V> norms(*row.norms, lane);
      const VectorNorms<float, V> through(by, lane);
      return for_each_run_of<kCount>(row.cells, [&](Index first) __attribute__((always_inline)) {
        V results[kCount];
#pragma GCC unroll 4
        for (Index i = 0; i < kCount; ++i) {
          const float* from = row.x + (first + i) * row.x_step + lane;
          const float* gradients = row.gradient + (first + i) * row.gradient_step + lane;
          prefetch_row(from);
          prefetch_row(gradients);
          const V x = load_row<V>(from);
          const V gradient = through_activation<float, kKind>(
              row.activation, load_row<V>(gradients), norms.sum(norms.normal(x)));
          results[i] = through.scale * (gradient - through.shift - through.normal(x));
        }
#pragma GCC unroll 4
        for (Index i = 0; i < kCount; ++i) {
          store_row(to + (first + i) * row.x_step + lane, results[i]);
        }
      });
    });
  }
}

void normalize_gradient_in_order(const NormalizeGradientRow<float>& row,
                                 const BlockNorms<float>& by,
                                 float* to) {
  NormalizeGradientRow<float> rest = row;
  with_kind(row.activation, [&]<Kind kKind>() {
    const Index done = normalize_gradient_at_once<kKind>(row, by, to);
    rest.x += done * row.x_step;
    rest.gradient += done * row.gradient_step;
    rest.cells -= done;
    normalize_gradient_row<float, kKind>(rest, by, to + done * row.x_step);
  });
}

template <Kind kKind>
[[gnu::noinline]] Index activation_gradient_at_once(const ActivationGradientRow<float>& given,
                                                    double* sums) {
  // Swish finds its slope one number at a time, from the value.
  constexpr Index kCount = kKind == Kind::Swish ? 0 : kCellsAtOnce<kKind>;
  if constexpr (kCount == 0) {
    return 0;
  } else {
    const ActivationGradientRow<float> row = given;
    const bool side_by_side = row.y_step == row.channels && row.gradient_step == row.channels &&
                              (row.x == nullptr || row.x_step == row.channels);
    return for_each_lane<float>(row.channels, side_by_side, [&]<class V>(Index lane) {
      auto sum = load_doubles<float, V>(sums + lane);
      const Index done =
          for_each_run_of<kCount>(row.cells, [&](Index first) __attribute__((always_inline)) {
            V results[kCount];
#pragma GCC unroll 4
            for (Index i = 0; i < kCount; ++i) {
              const float* x = row.x + (first + i) * row.x_step + lane;  // if the slope needs it
              results[i] = times_slope<float, kKind>(
                  row.activation,
                  load_row<V>(row.gradient + (first + i) * row.gradient_step + lane),
                  x,
                  load_row<V>(row.y + (first + i) * row.y_step + lane));
            }
#pragma GCC unroll 4
            for (Index i = 0; i < kCount; ++i) {
              store_row(row.gradient + (first + i) * row.gradient_step + lane, results[i]);
              const auto wide = to_doubles<float>(results[i]);
              for_each_double([](auto& total, const auto& of) { total += of; }, sum, wide);
            }
          });
      store_doubles(sums + lane, sum);
      return done;
    });
  }
}

void activation_gradient_in_order(const ActivationGradientRow<float>& row, double* sums) {
  ActivationGradientRow<float> rest = row;
  with_kind(row.activation, [&]<Kind kKind>() {
    const Index done = activation_gradient_at_once<kKind>(row, sums);
    rest.x = row.x == nullptr ? nullptr : row.x + done * row.x_step;
    rest.y += done * row.y_step;
    rest.gradient += done * row.gradient_step;
    rest.cells -= done;
    activation_gradient_row<float, kKind>(rest, sums);
  });
}

// Vectors, one by one in the end. Returns 0, or all.
template <class T, Kind kKind>
[[gnu::noinline]] Index activate_at_once(const T* x, Index vectors, Activation activation, T* y) {
  constexpr Index kCount = kCellsAtOnce<kKind>;
  if constexpr (kCount == 0) {
    return 0;
  } else {
    using V = typename RowVector<T, kRowFloats>::Type;
    Index done = for_each_run_of<kCount>(vectors, [&](Index first) __attribute__((always_inline)) {
      V values[kCount];
#pragma GCC unroll 4
      for (Index i = 0; i < kCount; ++i) {
        values[i] = activated<T, kKind>(activation, load_row<V>(x + (first + i) * kRowFloats));
      }
#pragma GCC unroll 4
      for (Index i = 0; i < kCount; ++i) {
        store_row(y + (first + i) * kRowFloats, values[i]);
      }
    });
    for (; done < vectors; ++done) {
      store_row(y + done * kRowFloats,
                activated<T, kKind>(activation, load_row<V>(x + done * kRowFloats)));
    }
    return done;
  }
}

void activate_in_order(const RowPair<float>& rows, Activation activation, float* y) {
  Index done = 0;  // cells
  if (rows.x_step == rows.channels && rows.y_step == rows.channels &&
      kMostChannels % rows.channels == 0) {
    // In whole cells.
    const Index vectors = rows.cells * rows.channels / kMostChannels * kMostChannels / kRowFloats;
    Index vectors_done = 0;
    with_kind(activation, [&]<Kind kKind>() {
      vectors_done = activate_at_once<float, kKind>(rows.x, vectors, activation, y);
    });
    done = vectors_done * kRowFloats / rows.channels;
  }
  activate_any<float>({rows.x + done * rows.x_step,
                       rows.x_step,
                       rows.y_step,
                       rows.cells - done,
                       rows.channels},
                      activation,
                      y + done * rows.y_step);
}

void add_cells_in_order(const float* x, Index step, Index cells, Index channels, double* sums) {
  constexpr Index kCount = 4;
  const bool side_by_side = step == channels;
  const Index done = for_each_lane<float>(channels, side_by_side, [&]<class V>(Index lane) {
    auto sum = load_doubles<float, V>(sums + lane);
    const auto add_run = [&](Index first) __attribute__((always_inline)) {
      Doubles<float, V> values[kCount];
#pragma GCC unroll 4
      for (Index i = 0; i < kCount; ++i) {
        const float* from = x + (first + i) * step + lane;
        prefetch_row(from);
        values[i] = to_doubles<float>(load_row<V>(from));
      }
#pragma GCC unroll 4
      for (Index i = 0; i < kCount; ++i) {
        for_each_double([](auto& total, const auto& of) { total += of; }, sum, values[i]);
      }
    };
    const Index runs = for_each_run_of<kCount>(cells, add_run);
    store_doubles(sums + lane, sum);
    return runs;
  });
  add_cells_row<float>(x + done * step, step, cells - done, channels, sums);
}

void add_products_in_order(const RowPair<float>& rows, const float* y, double* sums) {
  constexpr Index kCount = 4;
  const bool side_by_side = rows.x_step == rows.channels && rows.y_step == rows.channels;
  const Index channels = rows.channels;
  const Index done = for_each_lane<float>(channels, side_by_side, [&]<class V>(Index lane) {
    auto sum = load_doubles<float, V>(sums + lane);
    const Index runs =
        for_each_run_of<kCount>(rows.cells, [&](Index first) __attribute__((always_inline)) {
          Doubles<float, V> a[kCount];
          Doubles<float, V> b[kCount];
#pragma GCC unroll 4
          for (Index i = 0; i < kCount; ++i) {
            const float* of = rows.x + (first + i) * rows.x_step + lane;
            const float* by = y + (first + i) * rows.y_step + lane;
            prefetch_row(of);
            prefetch_row(by);
            a[i] = to_doubles<float>(load_row<V>(of));
            b[i] = to_doubles<float>(load_row<V>(by));
          }
#pragma GCC unroll 4
          for (Index i = 0; i < kCount; ++i) {
            for_each_double([](auto& total, const auto& of, const auto& by) { total += of * by; },
                            sum,
                            a[i],
                            b[i]);
          }
        });
    store_doubles(sums + lane, sum);
    return runs;
  });
  RowPair<float> rest = rows;
  rest.x += done * rows.x_step;
  rest.cells -= done;
  add_products_row<float>(rest, y + done * rows.y_step, sums);
}

// Windows of 2x2 cells.
Index pool_at_once(const PoolRow<float>& given) {
  constexpr Index kCount = 4;
  constexpr Index kSide = 2;
  const PoolRow<float> row = given;
  const bool side_by_side = row.x_step == row.channels;
  return for_each_lane<float>(row.channels, side_by_side, [&]<class V>(Index lane) {
    using N = Numbers<V, float>;
    return for_each_run_of<kCount>(row.windows, [&](Index first) __attribute__((always_inline)) {
      V best[kCount];
      N argmax[kCount];
#pragma GCC unroll 4
      for (Index i = 0; i < kCount; ++i) {
        best[i] = load_row<V>(row.x + (first + i) * row.x_window + lane);
        argmax[i] = N{} + static_cast<std::int32_t>(row.first);
      }
#pragma GCC unroll 4
      for (Index cell = 1; cell < kSide * kSide; ++cell) {
        const Index r = cell / kSide;
        const Index c = cell % kSide;
        const N number = N{} + static_cast<std::int32_t>(row.first + r * row.size + c);
#pragma GCC unroll 4
        for (Index i = 0; i < kCount; ++i) {
          const V value = load_row<V>(row.x + (first + i) * row.x_window +
                                                      r * row.x_row + c * row.x_step + lane);
          argmax[i] = value > best[i] ? number : argmax[i];
          best[i] = value > best[i] ? value : best[i];
        }
      }
#pragma GCC unroll 4
      for (Index i = 0; i < kCount; ++i) {
        store_row(row.y + (first + i) * row.y_step + lane, best[i]);
        if (row.argmax != nullptr) {
          store_row(row.argmax + (first + i) * row.argmax_step + lane,
                    convert_numbers<ArgmaxOffsets<V, float>>(argmax[i]));
        }
      }
    });
  });
}

void pool_in_order(const PoolRow<float>& row) {
  PoolRow<float> rest = row;
  const Index done = row.rows == 2 && row.cols == 2 ? pool_at_once(row) : 0;
  rest.x += done * row.x_window;
  rest.y += done * row.y_step;
  rest.argmax = row.argmax == nullptr ? nullptr : row.argmax + done * row.argmax_step;
  rest.windows -= done;
  pool_row<float>(rest);
}

[[gnu::always_inline]] inline void skip_windows(ArgmaxRow<float>& row, Index windows) {
  row.gradient += windows * row.gradient_step;
  row.argmax += windows * row.argmax_step;
  row.windows -= windows;
}

// Windows of two columns that no other window has.
template <bool kAdd>
Index unpool_at_once(const UnpoolRow<float>& given) {
  constexpr Index kCount = 4;
  constexpr Index kCols = 2;
  const UnpoolRow<float> row = given;
  const ArgmaxRow<float>& from = row.from;
  const bool side_by_side = from.gradient_step == from.channels && row.x_step == from.channels;
  return for_each_lane<float>(from.channels, side_by_side, [&]<class V>(Index lane) {
    return for_each_run_of<kCount>(from.windows, [&](Index first) __attribute__((always_inline)) {
      V cells[kCount][kCols];
      float* const x = row.x + first * row.x_window + lane;
#pragma GCC unroll 4
      for (Index i = 0; i < kCount; ++i) {
        const WindowGradient<float, V> of(from, first + i, lane);
#pragma GCC unroll 2
        for (Index c = 0; c < kCols; ++c) {
          const V share = of.where_argmax(from.first + c, of.gradient, V{});
          const float* cell = x + i * row.x_window + c * row.x_step;
          cells[i][c] = kAdd ? V(load_row<V>(cell) + share) : share;
        }
      }
#pragma GCC unroll 4
      for (Index i = 0; i < kCount; ++i) {
#pragma GCC unroll 2
        for (Index c = 0; c < kCols; ++c) {
          store_row(x + i * row.x_window + c * row.x_step, cells[i][c]);
        }
      }
    });
  });
}

template <bool kAdd>
void unpool_in_order(const UnpoolRow<float>& row) {
  UnpoolRow<float> rest = row;
  const bool apart = row.from.cols == 2 && row.x_window >= 2 * row.x_step;
  const Index done = apart ? unpool_at_once<kAdd>(row) : 0;
  skip_windows(rest.from, done);
  rest.x += done * row.x_window;
  unpool_row<float, kAdd>(rest);
}

// Windows of two columns.
template <Kind kKind>
[[gnu::noinline]] Index pooled_gradient_statistics_at_once(const PooledGradientRow<float>& row,
                                         double* shift_sums,
                                         double* scale_sums) {
  constexpr Index kCount = kCellsAtOnce<kKind> < 2 ? kCellsAtOnce<kKind> : 2;
  if constexpr (kCount == 0) {
    return 0;
  } else {
    constexpr Index kCols = 2;
    const ArgmaxRow<float>& from = row.from;
    const bool side_by_side = row.x_step == from.channels && from.gradient_step == from.channels;
    return for_each_lane<float>(from.channels, side_by_side, [&]<class V>(Index lane) {
      const VectorNorms<float, V> norms(*row.norms, lane);
      GradientStatistics<float, V> sums(shift_sums + lane, scale_sums + lane);
      const Index done =
          for_each_run_of<kCount>(from.windows, [&](Index first) __attribute__((always_inline)) {
            V normals[kCount];
            V gradients[kCount];
#pragma GCC unroll 4
            for (Index i = 0; i < kCount; ++i) {
              const WindowGradient<float, V> of(from, first + i, lane);
              const float* cells = row.x + (first + i) * kCols * row.x_step + lane;
              V x{};
              V share{};
#pragma GCC unroll 2
              for (Index c = 0; c < kCols; ++c) {
                const float* cell = cells + c * row.x_step;
                prefetch_row(cell);
                x = of.where_argmax(from.first + c, load_row<V>(cell), x);
                share = of.where_argmax(from.first + c, of.gradient, share);
              }
              normals[i] = norms.normal(x);
              gradients[i] = through_activation<float, kKind>(
                  row.activation, share, norms.sum(normals[i]));
            }
#pragma GCC unroll 4
            for (Index i = 0; i < kCount; ++i) {
              sums.add(gradients[i], normals[i]);
            }
          });
      sums.store(shift_sums + lane, scale_sums + lane);
      return done;
    });
  }
}

void pooled_gradient_statistics_in_order(const PooledGradientRow<float>& row,
                                         double* shift,
                                         double* scale) {
  PooledGradientRow<float> rest = row;
  if (row.from.cols == 2) {
    with_kind(row.activation, [&]<Kind kKind>() {
      const Index done = pooled_gradient_statistics_at_once<kKind>(row, shift, scale);
      skip_windows(rest.from, done);
      rest.x += done * row.from.cols * row.x_step;
    });
  }
  pooled_gradient_statistics_any(rest, shift, scale);
}

// `kernels`, but for rows of many cells.
constexpr RowKernels<float> with_rows_in_order(RowKernels<float> kernels) {
  kernels.add_cells = add_cells_in_order;
  kernels.add_products = add_products_in_order;
  kernels.activate = activate_in_order;
  kernels.normalize = normalize_in_order;
  kernels.gradient_statistics = gradient_statistics_in_order;
  kernels.pooled_gradient_statistics = pooled_gradient_statistics_in_order;
  kernels.normalize_gradient = normalize_gradient_in_order;
  kernels.activation_gradient = activation_gradient_in_order;
  kernels.pool = pool_in_order;
  kernels.unpool = unpool_in_order<false>;
  kernels.add_unpooled = unpool_in_order<true>;
  return kernels;
}
