// Winograd's transforms of 3x3 filters. Weights lie as (output channel, input channel, tap) or, for the way back, with the
// channels' roles exchanged: a vector takes one tap of kLanes filters, so they are transposed four by four.

constexpr Index kTaps = 9;
constexpr Index kFiltersAtOnce = 8;  // input channels: their taps are written as quads and, some time later, read as vectors

template <class T>
struct Quad {
  using Type [[gnu::vector_size(4 * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};

template <class T>
using Four = typename Quad<T>::Type;

template <class T>
[[gnu::always_inline]] inline Four<T> load_four(const T* from) {
  return *reinterpret_cast<const Four<T>*>(from);
}

template <class T>
[[gnu::always_inline]] inline void store_four(T* to, const Four<T>& four) {
  *reinterpret_cast<Four<T>*>(to) = four;
}

// Four numbers from each of four places `from_step` apart, to places `to_step` apart, transposed; assigns or adds.
template <class T, bool kAdd>
[[gnu::always_inline]] inline void transpose_four(const T* from,
                                                  Index from_step,
                                                  T* to,
                                                  Index to_step) {
  const Four<T> row0 = load_four(from);
  const Four<T> row1 = load_four(from + from_step);
  const Four<T> row2 = load_four(from + 2 * from_step);
  const Four<T> row3 = load_four(from + 3 * from_step);
  const Four<T> low01 = __builtin_shufflevector(row0, row1, 0, 4, 1, 5);
  const Four<T> low23 = __builtin_shufflevector(row2, row3, 0, 4, 1, 5);
  const Four<T> high01 = __builtin_shufflevector(row0, row1, 2, 6, 3, 7);
  const Four<T> high23 = __builtin_shufflevector(row2, row3, 2, 6, 3, 7);
  const Four<T> cols[] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                          __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                          __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                          __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
#pragma GCC unroll 4
  for (Index i = 0; i < 4; ++i) {
    T* place = to + i * to_step;
    store_four(place, kAdd ? load_four(place) + cols[i] : cols[i]);
  }
}

// taps[tap][lane] = from[lane * lane_step + tap], 0 for further lanes.
template <class T>
[[gnu::always_inline]] inline void gather_taps(const T* from,
                                               Index lane_step,
                                               Index lanes,
                                               T* taps) {
  const Index quads = lanes / 4 * 4;
  for (Index lane = 0; lane < quads; lane += 4) {
    const T* filters = from + lane * lane_step;
    transpose_four<T, false>(filters, lane_step, taps + lane, kLanes);
    transpose_four<T, false>(filters + 4, lane_step, taps + 4 * kLanes + lane, kLanes);
#pragma GCC unroll 4
    for (Index i = 0; i < 4; ++i) {
      taps[8 * kLanes + lane + i] = filters[i * lane_step + 8];
    }
  }
  for (Index lane = quads; lane < kLanes; ++lane) {
    for (Index tap = 0; tap < kTaps; ++tap) {
      taps[tap * kLanes + lane] = lane < lanes ? from[lane * lane_step + tap] : T{};
    }
  }
}

// to[lane * lane_step + tap] += taps[tap][lane]
template <class T>
[[gnu::always_inline]] inline void add_taps(const T* taps, Index lane_step, Index lanes, T* to) {
  const Index quads = lanes / 4 * 4;
  for (Index lane = 0; lane < quads; lane += 4) {
    T* filters = to + lane * lane_step;
    transpose_four<T, true>(taps + lane, kLanes, filters, lane_step);
    transpose_four<T, true>(taps + 4 * kLanes + lane, kLanes, filters + 4, lane_step);
#pragma GCC unroll 4
    for (Index i = 0; i < 4; ++i) {
      filters[i * lane_step + 8] += taps[8 * kLanes + lane + i];
    }
  }
  for (Index lane = quads; lane < lanes; ++lane) {
    for (Index tap = 0; tap < kTaps; ++tap) {
      to[lane * lane_step + tap] += taps[tap * kLanes + lane];
    }
  }
}

template <class T, Index kSide>
void transform_filters(const FilterTransform<T>& job) {
  constexpr Index kPositions = (kSide + 2) * (kSide + 2);
  alignas(kAlignment) T taps[kFiltersAtOnce][kTaps * kLanes];
  const Index first_tap = job.turned ? kTaps - 1 : 0;
  const Index tap_step = job.turned ? -kLanes : kLanes;
  for (Index begin = 0; begin < job.channels; begin += kFiltersAtOnce) {
    const Index left = job.channels - begin;
    const Index count = left < kFiltersAtOnce ? left : kFiltersAtOnce;
    for (Index c = 0; c < count; ++c) {
      gather_taps(
          job.taps + (begin + c) * job.channel_step, job.lane_step, job.lanes, taps[c]);
    }
    for_each_part<T>(count, [&](Index c, Index lane) __attribute__((always_inline)) {
      LanePart<T> filter[kTaps];
      LanePart<T> positions[kPositions];
      load_positions(taps[c] + first_tap * kLanes + lane, tap_step, filter);
      transform_square<3, kSide + 2>(
          filter, positions, [](const auto& in, auto& out) { weights_line<T>(in, out); });
      store_positions(positions, job.positions + (begin + c) * kLanes + lane, job.position_step);
    });
  }
}

template <class T, Index kSide>
void transform_filter_gradients(const FilterGradientTransform<T>& job) {
  constexpr Index kPositions = (kSide + 2) * (kSide + 2);
  alignas(kAlignment) T taps[kFiltersAtOnce][kTaps * kLanes];
  for (Index begin = 0; begin < job.channels; begin += kFiltersAtOnce) {
    const Index left = job.channels - begin;
    const Index count = left < kFiltersAtOnce ? left : kFiltersAtOnce;
    for_each_part<T>(count, [&](Index c, Index lane) __attribute__((always_inline)) {
      LanePart<T> positions[kPositions];
      LanePart<T> filter[kTaps];
      load_positions(job.positions + (begin + c) * kLanes + lane, job.position_step, positions);
      transform_square<kSide + 2, 3>(
          positions, filter, [](const auto& in, auto& out) { weight_gradient_line<T>(in, out); });
      store_positions(filter, taps[c] + lane, kLanes);
    });
    for (Index c = 0; c < count; ++c) {
      add_taps(taps[c], job.lane_step, job.lanes, job.taps + (begin + c) * job.channel_step);
    }
  }
}
