// kLanes numbers side by side, or kNarrowLanes, in as many of the machine's vectors as they take: compilers keep those in
// registers, where they would put one wide vector that the machine does not have into memory.

// Numbers of a part: what the machine's vector holds, or all if they are fewer.
template <class T, Index kWidth = kLanes>
constexpr Index kPartLanes = kVectorBytes / static_cast<Index>(sizeof(T)) < kWidth
                                 ? kVectorBytes / static_cast<Index>(sizeof(T))
                                 : kWidth;

template <class T, Index kWidth>
struct PartOf {
  static constexpr Index kBytes = kPartLanes<T, kWidth> * static_cast<Index>(sizeof(T));
  using Type [[gnu::vector_size(kBytes), gnu::aligned(kBytes), gnu::may_alias]] = T;
};

// One of the machine's vectors.
template <class T, Index kWidth = kLanes>
using LanePart = typename PartOf<T, kWidth>::Type;

template <Index kWidth = kLanes, class T>
[[gnu::always_inline]] inline LanePart<T, kWidth> load_part(const T* from) {
  return *reinterpret_cast<const LanePart<T, kWidth>*>(from);
}

template <Index kWidth = kLanes, class T>
[[gnu::always_inline]] inline void store_part(T* to, const LanePart<T, kWidth>& part) {
  *reinterpret_cast<LanePart<T, kWidth>*>(to) = part;
}

template <class T, Index kWidth = kLanes>
struct Lanes {
  static constexpr Index kParts = kWidth / kPartLanes<T, kWidth>;
  LanePart<T, kWidth> parts[kParts];
};

template <Index kWidth = kLanes, class T>
[[gnu::always_inline]] inline Lanes<T, kWidth> load_lanes(const T* from) {
  Lanes<T, kWidth> lanes;  // NOLINT(cppcoreguidelines-pro-type-member-init): all parts follow
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T, kWidth>::kParts; ++i) {
    lanes.parts[i] = load_part<kWidth>(from + i * kPartLanes<T, kWidth>);
  }
  return lanes;
}

// Lanes that may begin anywhere.
template <Index kWidth, class T>
[[gnu::always_inline]] inline Lanes<T, kWidth> load_anywhere(const T* from) {
  using Part = LanePart<T, kWidth>;
  struct [[gnu::packed, gnu::may_alias]] Anywhere {
    Part part;
  };
  Lanes<T, kWidth> lanes;  // NOLINT(cppcoreguidelines-pro-type-member-init): all parts follow
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T, kWidth>::kParts; ++i) {
    lanes.parts[i] = reinterpret_cast<const Anywhere*>(from + i * kPartLanes<T, kWidth>)->part;
  }
  return lanes;
}

template <class T, Index kWidth>
[[gnu::always_inline]] inline void store_lanes(T* to, const Lanes<T, kWidth>& lanes) {
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T, kWidth>::kParts; ++i) {
    store_part<kWidth>(to + i * kPartLanes<T, kWidth>, lanes.parts[i]);
  }
}

// sum += lanes * number, in one rounding where the machine has that.
template <class T, Index kWidth>
[[gnu::always_inline]] inline void add_product(Lanes<T, kWidth>& sum,
                                               const Lanes<T, kWidth>& lanes,
                                               T number) {
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T, kWidth>::kParts; ++i) {
    sum.parts[i] += lanes.parts[i] * number;
  }
}

template <class T, Index kWidth>
[[gnu::always_inline]] inline void add_lanes(Lanes<T, kWidth>& sum, const Lanes<T, kWidth>& lanes) {
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T, kWidth>::kParts; ++i) {
    sum.parts[i] += lanes.parts[i];
  }
}
template <class T, Index kWidth>
[[gnu::always_inline]] inline void add_lanes(T* to, const Lanes<T, kWidth>& lanes) {
  Lanes<T, kWidth> sum = load_lanes<kWidth>(to);
  add_lanes(sum, lanes);
  store_lanes(to, sum);
}

// Product by product of the lanes.
template <class T, Index kWidth>
[[gnu::always_inline]] inline void add_products(Lanes<T, kWidth>& sum,
                                                const Lanes<T, kWidth>& a,
                                                const Lanes<T, kWidth>& b) {
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T, kWidth>::kParts; ++i) {
    sum.parts[i] += a.parts[i] * b.parts[i];
  }
}
