// A register tile: kBlockChannels numbers side by side, or kNarrowChannels, in as many of the
// machine's vectors as they take: compilers keep those in registers, where they would put one wide
// vector that the machine does not have into memory.

// Numbers of a part: what the machine's vector holds, or all if they are fewer.
template <class T, Index kWidth = kBlockChannels>
constexpr Index kVectorElements = kVectorBytes / static_cast<Index>(sizeof(T)) < kWidth
                                 ? kVectorBytes / static_cast<Index>(sizeof(T))
                                 : kWidth;

template <class T, Index kWidth>
struct PartOf {
  static constexpr Index kBytes = kVectorElements<T, kWidth> * static_cast<Index>(sizeof(T));
  using Type [[gnu::vector_size(kBytes), gnu::aligned(kBytes), gnu::may_alias]] = T;
};

// One of the machine's vectors.
template <class T, Index kWidth = kBlockChannels>
using VectorPart = typename PartOf<T, kWidth>::Type;

template <Index kWidth = kBlockChannels, class T>
[[gnu::always_inline]] inline VectorPart<T, kWidth> load_part(const T* from) {
  return *reinterpret_cast<const VectorPart<T, kWidth>*>(from);
}

template <Index kWidth = kBlockChannels, class T>
[[gnu::always_inline]] inline void store_part(T* to, const VectorPart<T, kWidth>& part) {
  *reinterpret_cast<VectorPart<T, kWidth>*>(to) = part;
}

template <class T, Index kWidth = kBlockChannels>
struct RegisterTile {
  static constexpr Index kParts = kWidth / kVectorElements<T, kWidth>;
  VectorPart<T, kWidth> parts[kParts];
};

template <Index kWidth = kBlockChannels, class T>
[[gnu::always_inline]] inline RegisterTile<T, kWidth> load_register_tile(const T* from) {
  RegisterTile<T, kWidth> tile;  // NOLINT(cppcoreguidelines-pro-type-member-init): all parts follow
#pragma GCC unroll 8
  for (Index i = 0; i < RegisterTile<T, kWidth>::kParts; ++i) {
    tile.parts[i] = load_part<kWidth>(from + i * kVectorElements<T, kWidth>);
  }
  return tile;
}

// A tile that may begin anywhere in memory.
template <Index kWidth, class T>
[[gnu::always_inline]] inline RegisterTile<T, kWidth> load_anywhere(const T* from) {
  using Part = VectorPart<T, kWidth>;
  struct [[gnu::packed, gnu::may_alias]] Anywhere {
    Part part;
  };
  RegisterTile<T, kWidth> tile;  // NOLINT(cppcoreguidelines-pro-type-member-init): all parts follow
#pragma GCC unroll 8
  for (Index i = 0; i < RegisterTile<T, kWidth>::kParts; ++i) {
    tile.parts[i] = reinterpret_cast<const Anywhere*>(from + i * kVectorElements<T, kWidth>)->part;
  }
  return tile;
}

template <class T, Index kWidth>
[[gnu::always_inline]] inline void store_register_tile(T* to, const RegisterTile<T, kWidth>& tile) {
#pragma GCC unroll 8
  for (Index i = 0; i < RegisterTile<T, kWidth>::kParts; ++i) {
    store_part<kWidth>(to + i * kVectorElements<T, kWidth>, tile.parts[i]);
  }
}

// sum += tile * number, in one rounding where the machine has that.
template <class T, Index kWidth>
[[gnu::always_inline]] inline void add_product(RegisterTile<T, kWidth>& sum,
                                               const RegisterTile<T, kWidth>& tile,
                                               T number) {
#if defined(__arm__)
  if constexpr (kFlushes && sizeof(T) == sizeof(float)) {
    // GCC computes vectors of floats one by one there.
#pragma GCC unroll 8
    for (Index i = 0; i < RegisterTile<T, kWidth>::kParts; ++i) {
      asm("vmla.f32 %q0, %q1, %y2" : "+w"(sum.parts[i]) : "w"(tile.parts[i]), "t"(number));
    }
    return;
  }
#endif
#pragma GCC unroll 8
  for (Index i = 0; i < RegisterTile<T, kWidth>::kParts; ++i) {
    sum.parts[i] += tile.parts[i] * number;
  }
}

template <class T, Index kWidth>
[[gnu::always_inline]] inline void add_register_tile(RegisterTile<T, kWidth>& sum,
                                                     const RegisterTile<T, kWidth>& tile) {
#pragma GCC unroll 8
  for (Index i = 0; i < RegisterTile<T, kWidth>::kParts; ++i) {
    sum.parts[i] += tile.parts[i];
  }
}
template <class T, Index kWidth>
[[gnu::always_inline]] inline void add_register_tile(T* to, const RegisterTile<T, kWidth>& tile) {
  RegisterTile<T, kWidth> sum = load_register_tile<kWidth>(to);
  add_register_tile(sum, tile);
  store_register_tile(to, sum);
}

// Element by element.
template <class T, Index kWidth>
[[gnu::always_inline]] inline void add_products(RegisterTile<T, kWidth>& sum,
                                                const RegisterTile<T, kWidth>& a,
                                                const RegisterTile<T, kWidth>& b) {
#pragma GCC unroll 8
  for (Index i = 0; i < RegisterTile<T, kWidth>::kParts; ++i) {
    sum.parts[i] += a.parts[i] * b.parts[i];
  }
}
