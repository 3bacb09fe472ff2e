// kLanes numbers side by side, in as many of the machine's vectors as they take: compilers keep those in registers, where
// they would put one wide vector that the machine does not have into memory.

template <class T>
constexpr Index kPartLanes = kVectorBytes / static_cast<Index>(sizeof(T));

template <class T>
struct PartOf {
  using Type [[gnu::vector_size(kVectorBytes), gnu::aligned(kVectorBytes), gnu::may_alias]] = T;
};

// One of the machine's vectors.
template <class T>
using LanePart = typename PartOf<T>::Type;

template <class T>
[[gnu::always_inline]] inline LanePart<T> load_part(const T* from) {
  return *reinterpret_cast<const LanePart<T>*>(from);
}

template <class T>
[[gnu::always_inline]] inline void store_part(T* to, const LanePart<T>& part) {
  *reinterpret_cast<LanePart<T>*>(to) = part;
}

template <class T>
struct Lanes {
  static constexpr Index kParts = kLanes / kPartLanes<T>;
  LanePart<T> parts[kParts];
};

template <class T>
[[gnu::always_inline]] inline Lanes<T> load_lanes(const T* from) {
  Lanes<T> lanes;
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T>::kParts; ++i) {
    lanes.parts[i] = load_part(from + i * kPartLanes<T>);
  }
  return lanes;
}

template <class T>
[[gnu::always_inline]] inline void store_lanes(T* to, const Lanes<T>& lanes) {
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T>::kParts; ++i) {
    store_part(to + i * kPartLanes<T>, lanes.parts[i]);
  }
}

// sum += lanes * number, in one rounding where the machine has that.
template <class T>
[[gnu::always_inline]] inline void add_product(Lanes<T>& sum, const Lanes<T>& lanes, T number) {
#pragma GCC unroll 8
  for (Index i = 0; i < Lanes<T>::kParts; ++i) {
    sum.parts[i] += lanes.parts[i] * number;
  }
}
