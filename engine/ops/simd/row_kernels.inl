// The inner loops of row_kernels.h, compiled once for each vector width like block_kernels.inl.

// Vectors of `kCount` numbers, or with kCount = 1 a number.
template <class T, Index kCount>
struct RowVector {
  using Type [[gnu::vector_size(kCount * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};
template <class T>
struct RowVector<T, 1> {
  using Type = T;
};

template <class V, class T>
[[gnu::always_inline]] inline V load_row(const T* from) {
  return *reinterpret_cast<const V*>(from);
}

template <class V, class T>
[[gnu::always_inline]] inline void store_row(T* to, const V& value) {
  *reinterpret_cast<V*>(to) = value;
}

// Rows that nobody has read for long come from memory, and the machine's own prefetching ends with
// each page: asks for what will be read some cells later.
template <class T>
[[gnu::always_inline]] inline void prefetch_row(const T* from) {
  constexpr Index kAhead = 3072;  // bytes
  __builtin_prefetch(from + kAhead / static_cast<Index>(sizeof(T)));
}

// Applies a function of numbers to each of a vector.
template <class T, class V, class Function>
[[gnu::always_inline]] inline V one_by_one(const V& x, Function function) {
  V result = x;
  T* values = reinterpret_cast<T*>(&result);
  // NOLINTNEXTLINE(bugprone-sizeof-expression): V may be T itself, a vector of one
  for (Index i = 0; i < static_cast<Index>(sizeof(V) / sizeof(T)); ++i) {
    values[i] = function(values[i]);
  }
  return result;
}

#include "engine/ops/simd/vector_functions.inl"

// Activations that vectors compute, and all others.
enum class Kind {
  Linear,
  Relu,
  Leaky,
  Relu6,
  Ramp,
  HardMish,
  Logistic,
  Tanh,
  Swish,
  Mish,
  Gelu,
  HardSigmoid,
  HardSwish,
  Other
};

template <Kind kKind>
constexpr bool kTakesExponential =
    kKind == Kind::Other || (kKind >= Kind::Logistic && kKind <= Kind::Gelu);

// Whether there are vector functions for vectors of T.
template <class T>
constexpr bool kHasFunctions = sizeof(T) == 4;

// A vector function of a vector, or of one number: then as one of a vector too, so that it has the
// same bits.
template <class T, class V, class Function>
[[gnu::always_inline]] inline V vector_function(const V& x, Function function) {
  if constexpr (sizeof(V) == sizeof(T)) {
    using Vector = typename RowVector<T, 4>::Type;
    return function(Vector{} + x)[0];
  } else {
    return function(x);
  }
}

template <class T, class V>
[[gnu::always_inline]] inline V logistic_row(const V& x) {
  return vector_function<T>(x, [](const auto& vector) __attribute__((always_inline)) {
    return logistic_of(vector);
  });
}

template <class T, class V>
[[gnu::always_inline]] inline V tanh_row(const V& x) {
  return vector_function<T>(x, [](const auto& vector) __attribute__((always_inline)) {
    return tanh_of(vector);
  });
}

template <class T, class V>
[[gnu::always_inline]] inline V mish_row(const V& x) {
  return vector_function<T>(x, [](const auto& vector) __attribute__((always_inline)) {
    return mish_of(vector);
  });
}

template <class T, class V>
[[gnu::always_inline]] inline V mish_slope_row(const V& x) {
  return vector_function<T>(x, [](const auto& vector) __attribute__((always_inline)) {
    return mish_slope_of(vector);
  });
}

// `gradient` times the slope of x * logistic(x).
template <class T, class V>
[[gnu::always_inline]] inline V through_swish_row(const V& gradient, const V& x) {
  const V share = logistic_row<T>(x);
  return gradient * share * (1 + x * (1 - share));
}

template <class T, class V>
[[gnu::always_inline]] inline V gelu_share_row(const V& x) {
  return vector_function<T>(x, [](const auto& vector) __attribute__((always_inline)) {
    return gelu_share_of(vector);
  });
}

// `gradient` times the slope of x * logistic(2 u), see gelu_share_of().
template <class T, class V>
[[gnu::always_inline]] inline V through_gelu_row(const V& gradient, const V& x) {
  const V share = gelu_share_row<T>(x);
  const V cubic = x * x * x * T(kGeluCubed);
  return gradient * share * (1 + (1 - share) * (x * T(kGeluTwice) + cubic + cubic + cubic));
}

template <class T, class V>
[[gnu::always_inline]] inline V hard_mish_slope_row(const V& x) {
  const V zero{};
  const V one = zero + T(1);
  const V below = x <= -2 ? zero : x + one;
  return x > 0 ? one : below;
}

template <class T, class V>
[[gnu::always_inline]] inline V hard_sigmoid_row(const V& x) {
  const V zero{};
  const V below = x <= -3 ? zero : x / 6 + T(0.5);
  return x >= 3 ? zero + T(1) : below;
}

template <class T, class V>
[[gnu::always_inline]] inline V hard_swish_slope_row(const V& x) {
  const V zero{};
  const V below = x <= -3 ? zero : x / 3 + T(0.5);
  return x >= 3 ? zero + T(1) : below;
}

template <class T, Kind kKind, class V>
[[gnu::always_inline]] inline V activated(Activation activation, const V& x) {
  const V zero{};
  if constexpr (kKind == Kind::Linear) {
    return x;
  } else if constexpr (kKind == Kind::Relu) {
    return x <= 0 ? zero : x;  // NaN stays NaN, so that a loss shows it
  } else if constexpr (kKind == Kind::Leaky) {
    return x > 0 ? x : T(0.1) * x;
  } else if constexpr (kKind == Kind::Relu6) {
    const V most = zero + T(6);
    const V capped = x > most ? most : x;
    return x <= 0 ? zero : capped;
  } else if constexpr (kKind == Kind::Ramp) {
    return x > 0 ? T(1.1) * x : T(0.1) * x;
  } else if constexpr (kKind == Kind::HardMish) {
    const V below = x <= -2 ? zero : x * x / 2 + x;
    return x > 0 ? x : below;
  } else if constexpr (kKind == Kind::HardSigmoid) {
    return hard_sigmoid_row<T>(x);
  } else if constexpr (kKind == Kind::HardSwish) {
    return x * hard_sigmoid_row<T>(x);
  } else if constexpr (kKind == Kind::Mish && kHasFunctions<T>) {
    return mish_row<T>(x);
  } else if constexpr (kKind == Kind::Logistic && kHasFunctions<T>) {
    return logistic_row<T>(x);
  } else if constexpr (kKind == Kind::Tanh && kHasFunctions<T>) {
    return tanh_row<T>(x);
  } else if constexpr (kKind == Kind::Swish && kHasFunctions<T>) {
    return x * logistic_row<T>(x);
  } else if constexpr (kKind == Kind::Gelu && kHasFunctions<T>) {
    return x * gelu_share_row<T>(x);
  } else {
    return one_by_one<T>(x, [&](T value) { return activation_value(activation, value); });
  }
}

// `gradient` times the slope at x.
template <class T, Kind kKind, class V>
[[gnu::always_inline]] inline V through_activation(Activation activation,
                                                   const V& gradient,
                                                   const V& x) {
  const V zero{};
  if constexpr (kKind == Kind::Linear) {
    return gradient;
  } else if constexpr (kKind == Kind::Relu) {
    return x > 0 ? gradient : zero;
  } else if constexpr (kKind == Kind::Leaky) {
    return x > 0 ? gradient : T(0.1) * gradient;
  } else if constexpr (kKind == Kind::Relu6) {
    const V below = x < 6 ? gradient : zero;
    return x > 0 ? below : zero;
  } else if constexpr (kKind == Kind::Ramp) {
    return x > 0 ? T(1.1) * gradient : T(0.1) * gradient;
  } else if constexpr (kKind == Kind::HardMish) {
    return gradient * hard_mish_slope_row<T>(x);
  } else if constexpr (kKind == Kind::HardSigmoid) {
    const V below = x < 3 ? gradient * (T(1) / 6) : zero;
    return x > -3 ? below : zero;
  } else if constexpr (kKind == Kind::HardSwish) {
    return gradient * hard_swish_slope_row<T>(x);
  } else if constexpr (kKind == Kind::Mish && kHasFunctions<T>) {
    return gradient * mish_slope_row<T>(x);
  } else if constexpr (kKind == Kind::Logistic && kHasFunctions<T>) {
    const V y = logistic_row<T>(x);
    return gradient * y * (1 - y);
  } else if constexpr (kKind == Kind::Tanh && kHasFunctions<T>) {
    const V y = tanh_row<T>(x);
    return gradient * (1 - y * y);
  } else if constexpr (kKind == Kind::Swish && kHasFunctions<T>) {
    return through_swish_row<T>(gradient, x);
  } else if constexpr (kKind == Kind::Gelu && kHasFunctions<T>) {
    return through_gelu_row<T>(gradient, x);
  } else {
    return gradient *
           one_by_one<T>(x, [&](T value) { return activation_slope(activation, value); });
  }
}

// Calls run.operator()<V>(lane) for vectors that together are the channels of a row: the machine's,
// or shorter ones.
template <class T, class Run>
[[gnu::always_inline]] inline void for_each_vector(Index channels, bool side_by_side, Run run) {
  constexpr Index kMost = kVectorBytes / static_cast<Index>(sizeof(T));
  constexpr Index kLong = kMost < 16 ? kMost : 16;
  constexpr Index kShort = kMost < 8 ? kMost : 8;
  if (channels == 16 && side_by_side) {
#pragma GCC unroll 1
    for (Index lane = 0; lane < 16; lane += kLong) {
      run.template operator()<typename RowVector<T, kLong>::Type>(lane);
    }
  } else if (channels == 8 && side_by_side) {
#pragma GCC unroll 1
    for (Index lane = 0; lane < 8; lane += kShort) {
      run.template operator()<typename RowVector<T, kShort>::Type>(lane);
    }
  } else {
    for (Index lane = 0; lane < channels; ++lane) {
      run.template operator()<T>(lane);
    }
  }
}

// Numbers in double precision that a vector of the machine holds.
constexpr Index kDoubles = kVectorBytes / static_cast<Index>(sizeof(double));

template <class T, class V>
// NOLINTNEXTLINE(bugprone-sizeof-expression): V may be T itself, a vector of one
constexpr Index kCountOf = static_cast<Index>(sizeof(V) / sizeof(T));

// A vector of T in double precision, in as many of the machine's vectors as that takes: sums of
// these do not wait for each other.
template <class T, class V>
struct Doubles {
  static constexpr Index kOfPart = kCountOf<T, V> < kDoubles ? kCountOf<T, V> : kDoubles;
  static constexpr Index kParts = kCountOf<T, V> / kOfPart;
  using Part = typename RowVector<double, kOfPart>::Type;
  Part parts[kParts];
};

template <class T, Index kFirst, class V, Index... kNumbers>
[[gnu::always_inline]] inline auto part_of(const V& x, std::integer_sequence<Index, kNumbers...>) {
  return __builtin_shufflevector(x, x, (kFirst + kNumbers)...);
}

template <class T, class V>
[[gnu::always_inline]] inline Doubles<T, V> to_doubles(const V& x) {
  using D = Doubles<T, V>;
  D wide;
  if constexpr (kCountOf<T, V> == 1) {
    wide.parts[0] = static_cast<double>(x);
  } else if constexpr (D::kParts == 1) {
    wide.parts[0] = __builtin_convertvector(x, typename D::Part);
  } else {
    // Halves of what is converted as a whole: GCC 12 converts half a vector in twice as many steps.
    static_assert(D::kParts == 2);
    constexpr auto kNumbers = std::make_integer_sequence<Index, D::kOfPart>{};
    const auto whole =
        __builtin_convertvector(x, typename RowVector<double, kCountOf<T, V>>::Type);
    wide.parts[0] = part_of<T, 0>(whole, kNumbers);
    wide.parts[1] = part_of<T, D::kOfPart>(whole, kNumbers);
  }
  return wide;
}

template <class T, class V>
[[gnu::always_inline]] inline Doubles<T, V> load_doubles(const double* from) {
  using D = Doubles<T, V>;
  D wide;
#pragma GCC unroll 2
  for (Index i = 0; i < D::kParts; ++i) {
    wide.parts[i] = load_row<typename D::Part>(from + i * D::kOfPart);
  }
  return wide;
}

template <class T, class V>
[[gnu::always_inline]] inline void store_doubles(double* to, const Doubles<T, V>& wide) {
  using D = Doubles<T, V>;
#pragma GCC unroll 2
  for (Index i = 0; i < D::kParts; ++i) {
    store_row(to + i * D::kOfPart, wide.parts[i]);
  }
}

// Calls function(part of each...) for the parts of several.
template <class D, class... More, class Function>
[[gnu::always_inline]] inline void for_each_double(Function function, D& first, More&... more) {
#pragma GCC unroll 2
  for (Index i = 0; i < D::kParts; ++i) {
    function(first.parts[i], more.parts[i]...);
  }
}

// What add(sum, cell) adds to a sum for each of the cells: to several sums in turn, so that
// additions do not wait for each other, which are added up in the end.
template <class T, class V, class Add>
[[gnu::always_inline]] inline Doubles<T, V> sum_cells(Index cells, Add add) {
  constexpr Index kSums = 4;
  Doubles<T, V> sums[kSums]{};
  Index cell = 0;
  for (; cell + kSums <= cells; cell += kSums) {
#pragma GCC unroll 4
    for (Index i = 0; i < kSums; ++i) {
      add(sums[i], cell + i);
    }
  }
  for (; cell < cells; ++cell) {
    add(sums[0], cell);
  }
#pragma GCC unroll 4
  for (Index i = 1; i < kSums; ++i) {
    for_each_double([](auto& total, const auto& of) { total += of; }, sums[0], sums[i]);
  }
  return sums[0];
}

template <class T>
void moments_row(
    const T* x, Index step, Index cells, Index channels, double* mean, double* squares) {
  for_each_vector<T>(channels, step == channels, [&]<class V>(Index lane) {
    using D = Doubles<T, V>;
    D middle = sum_cells<T, V>(cells, [&](D& sum, Index cell) __attribute__((always_inline)) {
      const D value = to_doubles<T>(load_row<V>(x + cell * step + lane));
      for_each_double([](auto& total, const auto& of) { total += of; }, sum, value);
    });
    for_each_double([&](auto& of) { of /= static_cast<double>(cells); }, middle);
    const D deviations =
        sum_cells<T, V>(cells, [&](D& sum, Index cell) __attribute__((always_inline)) {
          const D value = to_doubles<T>(load_row<V>(x + cell * step + lane));
          for_each_double(
              [](auto& total, const auto& of, const auto& from) {
                total += (of - from) * (of - from);
              },
              sum,
              value,
              middle);
        });
    store_doubles(mean + lane, middle);
    store_doubles(squares + lane, deviations);
  });
}

template <class T>
void add_cells_row(const T* x, Index step, Index cells, Index channels, double* sums) {
  for_each_vector<T>(channels, step == channels, [&]<class V>(Index lane) {
    auto sum = load_doubles<T, V>(sums + lane);
    for (Index cell = 0; cell < cells; ++cell) {
      const T* from = x + cell * step + lane;
      prefetch_row(from);
      const auto value = to_doubles<T>(load_row<V>(from));
      for_each_double([](auto& total, const auto& of) { total += of; }, sum, value);
    }
    store_doubles(sums + lane, sum);
  });
}

template <class T>
void add_products_row(const RowPair<T>& rows, const T* y, double* sums) {
  const bool side_by_side = rows.x_step == rows.channels && rows.y_step == rows.channels;
  for_each_vector<T>(rows.channels, side_by_side, [&]<class V>(Index lane) {
    auto sum = load_doubles<T, V>(sums + lane);
    for (Index cell = 0; cell < rows.cells; ++cell) {
      const T* first = rows.x + cell * rows.x_step + lane;
      const T* second = y + cell * rows.y_step + lane;
      prefetch_row(first);
      prefetch_row(second);
      const auto a = to_doubles<T>(load_row<V>(first));
      const auto b = to_doubles<T>(load_row<V>(second));
      for_each_double([](auto& total, const auto& of, const auto& by) { total += of * by; }, sum, a, b);
    }
    store_doubles(sums + lane, sum);
  });
}

// The norms of some channels.
template <class T, class V>
struct VectorNorms {
  V mean;
  V inverse;
  V scale;
  V shift;

  [[gnu::always_inline]] VectorNorms(const BlockNorms<T>& norms, Index lane)
      : mean(load_row<V>(norms.mean + lane)),
        inverse(load_row<V>(norms.inverse + lane)),
        scale(load_row<V>(norms.scale + lane)),
        shift(load_row<V>(norms.shift + lane)) {}

  [[gnu::always_inline]] V normal(const V& x) const { return (x - mean) * inverse; }
  [[gnu::always_inline]] V sum(const V& normal) const { return normal * scale + shift; }
};

template <class T, Kind kKind>
void normalize_row(const NormalizeRow<T>& row) {
  const bool side_by_side = row.x_step == row.channels && row.y_step == row.channels;
  for_each_vector<T>(row.channels, side_by_side, [&]<class V>(Index lane) {
    const VectorNorms<T, V> norms(*row.norms, lane);
    for (Index cell = 0; cell < row.cells; ++cell) {
      const T* x = row.x + cell * row.x_step + lane;
      prefetch_row(x);
      store_row(row.y + cell * row.y_step + lane,
                activated<T, kKind>(row.activation, norms.sum(norms.normal(load_row<V>(x)))));
    }
  });
}

// Sums of gradients and of their products with normalised cells, over the lanes of a vector.
template <class T, class V>
struct GradientStatistics {
  Doubles<T, V> shift;
  Doubles<T, V> scale;

  [[gnu::always_inline]] GradientStatistics(const double* shift_sums, const double* scale_sums)
      : shift(load_doubles<T, V>(shift_sums)), scale(load_doubles<T, V>(scale_sums)) {}

  [[gnu::always_inline]] void add(const V& gradient, const V& normal) {
    const auto wide_gradient = to_doubles<T>(gradient);
    const auto wide_normal = to_doubles<T>(normal);
    for_each_double(
        [](auto& shift_sum, auto& scale_sum, const auto& g, const auto& n) {
          shift_sum += g;
          scale_sum += g * n;
        },
        shift,
        scale,
        wide_gradient,
        wide_normal);
  }
  [[gnu::always_inline]] void store(double* shift_sums, double* scale_sums) const {
    store_doubles(shift_sums, shift);
    store_doubles(scale_sums, scale);
  }
};

template <class T, Kind kKind>
void gradient_statistics_row(const NormalizeGradientRow<T>& row,
                             double* shift_sums,
                             double* scale_sums,
                             T* through) {
  const bool side_by_side = row.x_step == row.channels && row.gradient_step == row.channels;
  for_each_vector<T>(row.channels, side_by_side, [&]<class V>(Index lane) {
    const VectorNorms<T, V> norms(*row.norms, lane);
    GradientStatistics<T, V> sums(shift_sums + lane, scale_sums + lane);
    for (Index cell = 0; cell < row.cells; ++cell) {
      const T* x = row.x + cell * row.x_step + lane;
      const T* gradient = row.gradient + cell * row.gradient_step + lane;
      prefetch_row(x);
      prefetch_row(gradient);
      const V normal = norms.normal(load_row<V>(x));
      const V result = through_activation<T, kKind>(
          row.activation, load_row<V>(gradient), norms.sum(normal));
      sums.add(result, normal);
      if (kTakesExponential<kKind> && through != nullptr) {
        store_row(through + cell * row.gradient_step + lane, result);
      }
    }
    sums.store(shift_sums + lane, scale_sums + lane);
  });
}

template <class T, Kind kKind>
void normalize_gradient_row(const NormalizeGradientRow<T>& row, const BlockNorms<T>& by, T* to) {
  const bool side_by_side = row.x_step == row.channels && row.gradient_step == row.channels;
  for_each_vector<T>(row.channels, side_by_side, [&]<class V>(Index lane) {
    const VectorNorms<T, V> norms(*row.norms, lane);
    const VectorNorms<T, V> through(by, lane);
    for (Index cell = 0; cell < row.cells; ++cell) {
      const T* from = row.x + cell * row.x_step + lane;
      const T* gradients = row.gradient + cell * row.gradient_step + lane;
      prefetch_row(from);
      prefetch_row(gradients);
      const V x = load_row<V>(from);
      const V gradient = through_activation<T, kKind>(
          row.activation, load_row<V>(gradients), norms.sum(norms.normal(x)));
      store_row(to + cell * row.x_step + lane,
                V(through.scale * (gradient - through.shift - through.normal(x))));
    }
  });
}

// `gradient` times the slope where the value is y.
template <class T, Kind kKind, class V>
[[gnu::always_inline]] inline V times_slope(Activation activation,
                                            const V& gradient,
                                            const T* x,
                                            const V& y) {
  const V zero{};
  if constexpr (kKind == Kind::Linear) {
    return gradient;
  } else if constexpr (kKind == Kind::Relu) {
    return y > 0 ? gradient : zero;
  } else if constexpr (kKind == Kind::Leaky) {
    return y > 0 ? gradient : T(0.1) * gradient;
  } else if constexpr (kKind == Kind::Relu6) {
    const V below = y < 6 ? gradient : zero;
    return y > 0 ? below : zero;
  } else if constexpr (kKind == Kind::Ramp) {
    return y > 0 ? T(1.1) * gradient : T(0.1) * gradient;
  } else if constexpr (kKind == Kind::HardMish) {
    return gradient * hard_mish_slope_row<T>(load_row<V>(x));
  } else if constexpr (kKind == Kind::HardSigmoid) {
    const V below = y < 1 ? gradient * (T(1) / 6) : zero;
    return y > 0 ? below : zero;
  } else if constexpr (kKind == Kind::HardSwish) {
    return gradient * hard_swish_slope_row<T>(load_row<V>(x));
  } else if constexpr (kKind == Kind::Mish && kHasFunctions<T>) {
    return gradient * mish_slope_row<T>(load_row<V>(x));
  } else if constexpr (kKind == Kind::Swish && kHasFunctions<T>) {
    return through_swish_row<T>(gradient, load_row<V>(x));
  } else if constexpr (kKind == Kind::Gelu && kHasFunctions<T>) {
    return through_gelu_row<T>(gradient, load_row<V>(x));
  } else if constexpr (kKind == Kind::Logistic) {
    return gradient * (y * (1 - y));
  } else if constexpr (kKind == Kind::Tanh) {
    return gradient * (1 - y * y);
  } else {
    V result = gradient;
    T* values = reinterpret_cast<T*>(&result);
    const T* outputs = reinterpret_cast<const T*>(&y);
    // NOLINTNEXTLINE(bugprone-sizeof-expression): V may be T itself, a vector of one
    for (Index i = 0; i < static_cast<Index>(sizeof(V) / sizeof(T)); ++i) {
      values[i] *= activation_slope(activation, x == nullptr ? T{} : x[i], outputs[i]);
    }
    return result;
  }
}

template <class T, Kind kKind>
void activation_gradient_row(const ActivationGradientRow<T>& row, double* sums) {
  const bool side_by_side = row.y_step == row.channels && row.gradient_step == row.channels &&
                            (row.x == nullptr || row.x_step == row.channels);
  for_each_vector<T>(row.channels, side_by_side, [&]<class V>(Index lane) {
    auto sum = load_doubles<T, V>(sums + lane);
    for (Index cell = 0; cell < row.cells; ++cell) {
      T* gradient = row.gradient + cell * row.gradient_step + lane;
      const T* x = row.x == nullptr ? nullptr : row.x + cell * row.x_step + lane;
      const V result = times_slope<T, kKind>(row.activation,
                                             load_row<V>(gradient),
                                             x,
                                             load_row<V>(row.y + cell * row.y_step + lane));
      store_row(gradient, result);
      const auto wide = to_doubles<T>(result);
      for_each_double([](auto& total, const auto& of) { total += of; }, sum, wide);
    }
    store_doubles(sums + lane, sum);
  });
}

// Integers that go with a vector of T, and argmax offsets.
template <class T>
struct NumberOf;
template <>
struct NumberOf<float> {
  using Type = std::int32_t;
};
template <>
struct NumberOf<double> {
  using Type = std::int64_t;
};
template <class V, class T>
using Numbers =
    typename RowVector<typename NumberOf<T>::Type, static_cast<Index>(sizeof(V) / sizeof(T))>::Type;
template <class V, class T>
using ArgmaxOffsets =
    typename RowVector<ArgmaxOffset, static_cast<Index>(sizeof(V) / sizeof(T))>::Type;

// Integers of kBytes each.
template <Index kBytes>
struct WholeNumber;
template <>
struct WholeNumber<2> {
  using Type = std::uint16_t;
};
template <>
struct WholeNumber<4> {
  using Type = std::uint32_t;
};

// Of numbers that the narrower type holds, too. Halves or doubles widths one step at a time: GCC 12
// takes larger steps number by number, but for whole vectors of AVX-512.
template <class To, class From>
[[gnu::always_inline]] inline To convert_numbers(const From& from) {
  if constexpr (std::is_arithmetic_v<From>) {
    return static_cast<To>(from);
  } else {
    constexpr Index kCount = sizeof(from) / sizeof(from[0]);
    constexpr Index kFrom = sizeof(from) / kCount;
    constexpr Index kTo = sizeof(To) / kCount;
    constexpr bool kAtOnce = sizeof(From) == 64 && kVectorBytes == 64;
    if constexpr (kFrom >= 4 * kTo && !kAtOnce) {
      using Half = typename RowVector<typename WholeNumber<kFrom / 2>::Type, kCount>::Type;
      return convert_numbers<To>(__builtin_convertvector(from, Half));
    } else if constexpr (kTo >= 4 * kFrom) {
      using Twice = typename RowVector<typename WholeNumber<2 * kFrom>::Type, kCount>::Type;
      return convert_numbers<To>(__builtin_convertvector(from, Twice));
    } else {
      return __builtin_convertvector(from, To);
    }
  }
}

// kRows and kCols of the window, or 0: as the row says.
template <class T, Index kRows, Index kCols>
void pool_windows(const PoolRow<T>& job) {
  const PoolRow<T> row = job;  // which no store can change
  const bool side_by_side = row.x_step == row.channels;
  for_each_vector<T>(row.channels, side_by_side, [&]<class V>(Index lane) {
    using N = Numbers<V, T>;
    const Index rows = kRows == 0 ? row.rows : kRows;
    const Index cols = kCols == 0 ? row.cols : kCols;
    for (Index window = 0; window < row.windows; ++window) {
      const T* x = row.x + window * row.x_window + lane;
      V best = load_row<V>(x);
      N argmax = N{} + static_cast<typename NumberOf<T>::Type>(row.first);
      for (Index r = 0; r < rows; ++r) {
        for (Index c = 0; c < cols; ++c) {
          const V value = load_row<V>(x + r * row.x_row + c * row.x_step);
          const auto number = static_cast<typename NumberOf<T>::Type>(row.first + r * row.size + c);
          argmax = value > best ? N{} + number : argmax;
          best = value > best ? value : best;
        }
      }
      store_row(row.y + window * row.y_step + lane, best);
      if (row.argmax != nullptr) {
        store_row(row.argmax + window * row.argmax_step + lane,
                  convert_numbers<ArgmaxOffsets<V, T>>(argmax));
      }
    }
  });
}

template <class T>
void pool_row(const PoolRow<T>& row) {
  if (row.rows == 2 && row.cols == 2) {
    pool_windows<T, 2, 2>(row);
  } else {
    pool_windows<T, 0, 0>(row);
  }
}

// What a window has for some channels: its gradient, and the number of the cell that it goes to.
template <class T, class V>
struct WindowGradient {
  V gradient;
  Numbers<V, T> argmax;

  [[gnu::always_inline]] WindowGradient(const ArgmaxRow<T>& from, Index window, Index lane) {
    const T* gradients = from.gradient + window * from.gradient_step + lane;
    const ArgmaxOffset* offsets = from.argmax + window * from.argmax_step + lane;
    prefetch_row(gradients);
    prefetch_row(offsets);
    gradient = load_row<V>(gradients);
    argmax = convert_numbers<Numbers<V, T>>(load_row<ArgmaxOffsets<V, T>>(offsets));
  }

  // `yes` where a cell has won, else `no`.
  [[gnu::always_inline]] V where_argmax(Index cell, const V& yes, const V& no) const {
    const auto number = Numbers<V, T>{} + static_cast<typename NumberOf<T>::Type>(cell);
    return argmax == number ? yes : no;
  }
};

// kCols of the window, or 0: as the row says.
template <class T, bool kAdd, Index kCols>
void unpool_windows(const UnpoolRow<T>& row) {
  const ArgmaxRow<T>& from = row.from;
  const bool side_by_side = from.gradient_step == from.channels && row.x_step == from.channels;
  const Index cols = kCols == 0 ? from.cols : kCols;
  for_each_vector<T>(from.channels, side_by_side, [&]<class V>(Index lane) {
    for (Index window = 0; window < from.windows; ++window) {
      const WindowGradient<T, V> of(from, window, lane);
      T* x = row.x + window * row.x_window + lane;
#pragma GCC unroll 2
      for (Index c = 0; c < cols; ++c) {
        T* to = x + c * row.x_step;
        const V share = of.where_argmax(from.first + c, of.gradient, V{});
        store_row(to, kAdd ? V(load_row<V>(to) + share) : share);
      }
    }
  });
}

template <class T, bool kAdd>
void unpool_row(const UnpoolRow<T>& row) {
  if (row.from.cols == 2) {
    unpool_windows<T, kAdd, 2>(row);
  } else {
    unpool_windows<T, kAdd, 0>(row);
  }
}

// kCols of the windows, or 0: as the row says.
template <class T, Kind kKind, Index kCols>
void pooled_gradient_statistics_row(const PooledGradientRow<T>& row,
                              double* shift_sums,
                              double* scale_sums) {
  const ArgmaxRow<T>& from = row.from;
  const bool side_by_side = row.x_step == from.channels && from.gradient_step == from.channels;
  const Index cols = kCols == 0 ? from.cols : kCols;
  for_each_vector<T>(from.channels, side_by_side, [&]<class V>(Index lane) {
    const VectorNorms<T, V> norms(*row.norms, lane);
    GradientStatistics<T, V> sums(shift_sums + lane, scale_sums + lane);
    for (Index window = 0; window < from.windows; ++window) {
      const WindowGradient<T, V> of(from, window, lane);
      const T* cells = row.x + window * cols * row.x_step + lane;
      V x{};
      V share{};
#pragma GCC unroll 2
      for (Index c = 0; c < cols; ++c) {
        const T* cell = cells + c * row.x_step;
        prefetch_row(cell);
        x = of.where_argmax(from.first + c, load_row<V>(cell), x);
        share = of.where_argmax(from.first + c, of.gradient, share);
      }
      const V normal = norms.normal(x);
      sums.add(through_activation<T, kKind>(row.activation, share, norms.sum(normal)), normal);
    }
    sums.store(shift_sums + lane, scale_sums + lane);
  });
}

// What all cells of a depthwise job share: its taps, where their number is known, in registers.
template <class T, class V, Index kTaps>
struct DepthwiseWeights {
  V weights[kTaps == 0 ? 1 : kTaps] = {};
  Index offsets[kTaps == 0 ? 1 : kTaps] = {};

  [[gnu::always_inline]] DepthwiseWeights(const DepthwiseCells<T>& job, Index lane) {
#pragma GCC unroll 16
    for (Index t = 0; t < kTaps; ++t) {
      weights[t] = load_row<V>(job.weights + job.taps[t].weights + lane);
      offsets[t] = job.taps[t].x;
    }
  }
};

// kCount cells at once, so that a weight is loaded for all of them. Steps that are not known, where
// kStep is 0, are multiplied by few different numbers.
template <class T, class V, Index kCount, Index kStep>
[[gnu::always_inline]] inline void add_tap(
    const V& weight, const T* near, Index step, V (&sums)[kCount]) {
  const T* far = near + 4 * step;
#pragma GCC unroll 8
  for (Index p = 0; p < kCount; ++p) {
    const T* cell = kStep != 0 ? near + p * kStep : (p < 4 ? near : far) + p % 4 * step;
    sums[p] += weight * load_row<V>(cell);
  }
}

template <class T, class V, Index kCount, Index kStep, Index kTaps>
[[gnu::always_inline]] inline void depthwise_cells(const DepthwiseCells<T>& job,
                                                   const DepthwiseWeights<T, V, kTaps>& shared,
                                                   const T* x,
                                                   T* y,
                                                   Index lane) {
  V sums[kCount];
#pragma GCC unroll 8
  for (Index p = 0; p < kCount; ++p) {
    sums[p] = load_row<V>(job.start == nullptr ? y + p * job.y_step : job.start + lane);
  }
  if constexpr (kTaps == 0) {
    for (Index t = 0; t < job.tap_count; ++t) {
      const V weight = load_row<V>(job.weights + job.taps[t].weights + lane);
      add_tap<T, V, kCount, kStep>(weight, x + job.taps[t].x, job.x_step, sums);
    }
  } else {
#pragma GCC unroll 16
    for (Index t = 0; t < kTaps; ++t) {
#if defined(__x86_64__)
      const T* near = x + shared.offsets[t];
#else
      // ARM adds at most a number to an address: one register for each tap is enough then, and GCC,
      // unless it cannot see what the address is made of, takes one for each tap and cell.
      const T* near = x + job.taps[t].x;
      asm("" : "+r"(near));
#endif
      add_tap<T, V, kCount, kStep>(shared.weights[t], near, job.x_step, sums);
    }
  }
#pragma GCC unroll 8
  for (Index p = 0; p < kCount; ++p) {
    store_row(y + p * job.y_step, sums[p]);
  }
}

template <class T, class V, Index kCount, Index kStep, Index kTaps>
[[gnu::always_inline]] inline void depthwise_some(const DepthwiseCells<T>& job,
                                                  const DepthwiseWeights<T, V, kTaps>& shared,
                                                  const T* x,
                                                  T* y,
                                                  Index lane,
                                                  Index cells) {
  if constexpr (kCount > 0) {
    if (cells == kCount) {
      depthwise_cells<T, V, kCount, kStep, kTaps>(job, shared, x, y, lane);
    } else {
      depthwise_some<T, V, kCount - 1, kStep, kTaps>(job, shared, x, y, lane, cells);
    }
  }
}

template <class T, class V, Index kStep, Index kTaps>
void depthwise_channels(const DepthwiseCells<T>& job, Index lane) {
  const DepthwiseWeights<T, V, kTaps> shared(job, lane);
  const Index runs = (job.cols + kCells - 1) / kCells;
  for (Index row = 0; row < job.rows; ++row) {
    const T* x = job.x + row * job.x_row + lane;
    T* y = job.y + row * job.y_row + lane;
    Index left = job.cols;
    for (Index run = runs; run > 0; --run) {
      const Index cells = run == 1 ? left : (left + run - 1) / run;
      depthwise_some<T, V, kCells, kStep, kTaps>(job, shared, x, y, lane, cells);
      x += cells * job.x_step;
      y += cells * job.y_step;
      left -= cells;
    }
  }
}

template <class T>
void depthwise_any(const DepthwiseCells<T>& job) {
  constexpr Index kUsualTaps = 9;  // of a 3x3 filter
  const bool side_by_side = job.x_step % job.channels == 0 && job.y_step % job.channels == 0;
  for_each_vector<T>(job.channels, side_by_side, [&]<class V>(Index lane) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): V may be T itself, a vector of one
    constexpr Index kDense = static_cast<Index>(sizeof(V) / sizeof(T));
    const bool usual = job.tap_count == kUsualTaps;
    if (job.x_step == kDense) {
      usual ? depthwise_channels<T, V, kDense, kUsualTaps>(job, lane)
            : depthwise_channels<T, V, kDense, 0>(job, lane);
    } else {
      usual ? depthwise_channels<T, V, 0, kUsualTaps>(job, lane)
            : depthwise_channels<T, V, 0, 0>(job, lane);
    }
  });
}

template <class T, class V, Index kCount>
void sum_depthwise(const DepthwiseSums<T>& job, Index lane) {
  V sums[kCount];
  Index offset[kCount];
#pragma GCC unroll 16
  for (Index t = 0; t < kCount; ++t) {
    sums[t] = load_row<V>(job.sums + t * kMostChannels + lane);
    offset[t] = job.offsets[t];
  }
  for (Index row = 0; row < job.rows; ++row) {
    const T* x = job.x + row * job.x_row + lane;
    const T* gradients = job.gradient + row * job.gradient_row + lane;
    for (Index col = 0; col < job.cols; ++col) {
      const V gradient = load_row<V>(gradients);
#pragma GCC unroll 16
      for (Index t = 0; t < kCount; ++t) {
        sums[t] += gradient * load_row<V>(x + offset[t]);
      }
      x += job.x_step;
      gradients += job.gradient_step;
    }
  }
#pragma GCC unroll 16
  for (Index t = 0; t < kCount; ++t) {
    store_row(job.sums + t * kMostChannels + lane, sums[t]);
  }
}

template <class T, class V, Index kCount>
void dispatch_depthwise(const DepthwiseSums<T>& job, Index lane, Index taps) {
  if constexpr (kCount > 0) {
    if (taps == kCount) {
      sum_depthwise<T, V, kCount>(job, lane);
    } else {
      dispatch_depthwise<T, V, kCount - 1>(job, lane, taps);
    }
  }
}

template <class T>
void depthwise_sums_any(const DepthwiseSums<T>& job, Index taps) {
  const bool side_by_side = job.x_step % job.channels == 0 && job.gradient_step % job.channels == 0;
  for_each_vector<T>(job.channels, side_by_side, [&]<class V>(Index lane) {
    dispatch_depthwise<T, V, kDepthwiseTaps>(job, lane, taps);
  });
}

// Calls run.operator()<kind>() with the Kind of an activation.
template <class Run>
[[gnu::always_inline]] inline void with_kind(Activation activation, Run run) {
  if (activation == Activation::Linear) {
    run.template operator()<Kind::Linear>();
  } else if (activation == Activation::Relu) {
    run.template operator()<Kind::Relu>();
  } else if (activation == Activation::Leaky) {
    run.template operator()<Kind::Leaky>();
  } else if (activation == Activation::Relu6) {
    run.template operator()<Kind::Relu6>();
  } else if (activation == Activation::Ramp) {
    run.template operator()<Kind::Ramp>();
  } else if (activation == Activation::Logistic) {
    run.template operator()<Kind::Logistic>();
  } else if (activation == Activation::Tanh) {
    run.template operator()<Kind::Tanh>();
  } else if (activation == Activation::Swish) {
    run.template operator()<Kind::Swish>();
  } else if (activation == Activation::Mish) {
    run.template operator()<Kind::Mish>();
  } else if (activation == Activation::Gelu) {
    run.template operator()<Kind::Gelu>();
  } else if (activation == Activation::HardMish) {
    run.template operator()<Kind::HardMish>();
  } else if (activation == Activation::HardSigmoid) {
    run.template operator()<Kind::HardSigmoid>();
  } else if (activation == Activation::HardSwish) {
    run.template operator()<Kind::HardSwish>();
  } else {
    run.template operator()<Kind::Other>();
  }
}

template <class T, Kind kKind>
void activate_row(const RowPair<T>& rows, Activation activation, T* y) {
  const bool side_by_side = rows.x_step == rows.channels && rows.y_step == rows.channels;
  for_each_vector<T>(rows.channels, side_by_side, [&]<class V>(Index lane) {
    for (Index cell = 0; cell < rows.cells; ++cell) {
      store_row(y + cell * rows.y_step + lane,
                activated<T, kKind>(activation, load_row<V>(rows.x + cell * rows.x_step + lane)));
    }
  });
}

// Narrow cells side by side are numbers like any others: the widest vectors take most of them.
template <class T>
void activate_any(const RowPair<T>& rows, Activation activation, T* y) {
  const bool dense = rows.x_step == rows.channels && rows.y_step == rows.channels &&
                     kMostChannels % rows.channels == 0;
  const Index cells = dense ? rows.cells * rows.channels / kMostChannels : 0;  // kMostChannels each
  const Index taken = cells * kMostChannels;
  const RowPair<T> rest{rows.x + taken,
                        rows.x_step,
                        rows.y_step,
                        rows.cells - taken / rows.channels,
                        rows.channels};
  with_kind(activation, [&]<Kind kKind>() {
    activate_row<T, kKind>(
        {rows.x, kMostChannels, kMostChannels, cells, kMostChannels}, activation, y);
    activate_row<T, kKind>(rest, activation, y + taken);
  });
}

template <class T>
void normalize_any(const NormalizeRow<T>& row) {
  with_kind(row.activation, [&]<Kind kKind>() { normalize_row<T, kKind>(row); });
}

template <class T>
void gradient_statistics_any(const NormalizeGradientRow<T>& row,
                             double* shift,
                             double* scale,
                             T* through) {
  with_kind(row.activation,
            [&]<Kind kKind>() { gradient_statistics_row<T, kKind>(row, shift, scale, through); });
}

template <class T>
void pooled_gradient_statistics_any(const PooledGradientRow<T>& row, double* shift, double* scale) {
  with_kind(row.activation, [&]<Kind kKind>() {
    if (row.from.cols == 2) {
      pooled_gradient_statistics_row<T, kKind, 2>(row, shift, scale);
    } else {
      pooled_gradient_statistics_row<T, kKind, 0>(row, shift, scale);
    }
  });
}

template <class T>
void normalize_gradient_any(const NormalizeGradientRow<T>& row, const BlockNorms<T>& by, T* to) {
  with_kind(row.activation, [&]<Kind kKind>() { normalize_gradient_row<T, kKind>(row, by, to); });
}

template <class T>
void activation_gradient_any(const ActivationGradientRow<T>& row, double* sums) {
  with_kind(row.activation, [&]<Kind kKind>() { activation_gradient_row<T, kKind>(row, sums); });
}

template <class T>
constexpr RowKernels<T> row_kernels_of_width() {
  RowKernels<T> kernels{};
  kernels.moments = moments_row<T>;
  kernels.add_cells = add_cells_row<T>;
  kernels.add_products = add_products_row<T>;
  kernels.activate = activate_any<T>;
  kernels.normalize = normalize_any<T>;
  kernels.gradient_statistics = gradient_statistics_any<T>;
  kernels.pooled_gradient_statistics = pooled_gradient_statistics_any<T>;
  kernels.normalize_gradient = normalize_gradient_any<T>;
  kernels.activation_gradient = activation_gradient_any<T>;
  kernels.pool = pool_row<T>;
  kernels.unpool = unpool_row<T, false>;
  kernels.add_unpooled = unpool_row<T, true>;
  kernels.depthwise = depthwise_any<T>;
  kernels.depthwise_taps = kDepthwiseTaps;
  kernels.depthwise_sums = depthwise_sums_any<T>;
  return kernels;
}
