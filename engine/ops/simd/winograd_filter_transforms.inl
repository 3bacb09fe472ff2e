// Winograd's transforms of 3x3 filters. Weights lie as (output channel, input channel, tap) or, for
// the way back, with the channels' roles exchanged: a vector takes one tap of kBlockChannels
// filters, so they are transposed four by four.

constexpr Index kTaps = 9;
constexpr Index kFiltersAtOnce =
    8;  // input channels: their taps are written as quads and, some time later, read as vectors

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

// Four numbers from each of four places `from_step` apart, to places `to_step` apart, transposed;
// assigns or adds.
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

// Some input channels of kBlockChannels filters: those of channel c and filter l begin at
// l * filter_step + c * channel_step.
struct FilterSteps {
  Index filter_step = 0;
  Index channel_step = 0;
  Index filters = 0;  // that there are
  Index channels = 0;
};

// taps[channel][tap][lane] = from[lane][channel][tap], 0 for further filters. Four filters of all
// channels before the next four: filters are often whole pages apart, and a cache has room for few
// such lines.
template <class T>
[[gnu::always_inline]] inline void gather_taps(const T* from,
                                               const FilterSteps& steps,
                                               T (*taps)[kTaps * kBlockChannels]) {
  const Index quads = steps.filters / 4 * 4;
  for (Index lane = 0; lane < quads; lane += 4) {
    const T* filters = from + lane * steps.filter_step;
    for (Index c = 0; c < steps.channels; ++c) {
#pragma GCC unroll 4
      for (Index i = 0; i < 4; ++i) {
        __builtin_prefetch(filters + i * steps.filter_step + kFiltersAtOnce * steps.channel_step);
      }
      transpose_four<T, false>(filters, steps.filter_step, taps[c] + lane, kBlockChannels);
      transpose_four<T, false>(
          filters + 4, steps.filter_step, taps[c] + 4 * kBlockChannels + lane, kBlockChannels);
#pragma GCC unroll 4
      for (Index i = 0; i < 4; ++i) {
        taps[c][8 * kBlockChannels + lane + i] = filters[i * steps.filter_step + 8];
      }
      filters += steps.channel_step;
    }
  }
  for (Index lane = quads; lane < kBlockChannels; ++lane) {
    for (Index c = 0; c < steps.channels; ++c) {
      const T* filter = from + lane * steps.filter_step + c * steps.channel_step;
      for (Index tap = 0; tap < kTaps; ++tap) {
        taps[c][tap * kBlockChannels + lane] = lane < steps.filters ? filter[tap] : T{};
      }
    }
  }
}

// to[lane][channel][tap] += taps[channel][tap][lane], in the same order.
template <class T>
[[gnu::always_inline]] inline void add_taps(const T (*taps)[kTaps * kBlockChannels],
                                            const FilterSteps& steps,
                                            T* to) {
  const Index quads = steps.filters / 4 * 4;
  for (Index lane = 0; lane < quads; lane += 4) {
    T* filters = to + lane * steps.filter_step;
    for (Index c = 0; c < steps.channels; ++c) {
      transpose_four<T, true>(taps[c] + lane, kBlockChannels, filters, steps.filter_step);
      transpose_four<T, true>(
          taps[c] + 4 * kBlockChannels + lane, kBlockChannels, filters + 4, steps.filter_step);
#pragma GCC unroll 4
      for (Index i = 0; i < 4; ++i) {
        filters[i * steps.filter_step + 8] += taps[c][8 * kBlockChannels + lane + i];
      }
      filters += steps.channel_step;
    }
  }
  for (Index lane = quads; lane < steps.filters; ++lane) {
    for (Index c = 0; c < steps.channels; ++c) {
      T* filter = to + lane * steps.filter_step + c * steps.channel_step;
      for (Index tap = 0; tap < kTaps; ++tap) {
        filter[tap] += taps[c][tap * kBlockChannels + lane];
      }
    }
  }
}

template <class T, Index kSide>
void transform_filters(const FilterTransform<T>& job) {
  constexpr Index kPositions = (kSide + 2) * (kSide + 2);
  alignas(kAlignment) T taps[kFiltersAtOnce][kTaps * kBlockChannels];
  const Index first_tap = job.turned ? kTaps - 1 : 0;
  const Index tap_step = job.turned ? -kBlockChannels : kBlockChannels;
  for (Index begin = 0; begin < job.channels; begin += kFiltersAtOnce) {
    const Index left = job.channels - begin;
    const Index count = left < kFiltersAtOnce ? left : kFiltersAtOnce;
    gather_taps(job.taps + begin * job.channel_step,
                {job.filter_step, job.channel_step, job.filters, count},
                taps);
    for_each_part<T>(count, [&](Index c, Index lane) __attribute__((always_inline)) {
      VectorPart<T> filter[kTaps];
      VectorPart<T> positions[kPositions];
      load_positions(taps[c] + first_tap * kBlockChannels + lane, tap_step, filter);
      transform_square<3, kSide + 2>(
          filter, positions, [](const auto& in, auto& out) { weights_line<T>(in, out); });
      store_positions(
          positions, job.positions + (begin + c) * kBlockChannels + lane, job.position_step);
    });
  }
}

template <class T, Index kSide>
void transform_filter_gradients(const FilterGradientTransform<T>& job) {
  constexpr Index kPositions = (kSide + 2) * (kSide + 2);
  alignas(kAlignment) T taps[kFiltersAtOnce][kTaps * kBlockChannels];
  for (Index begin = 0; begin < job.channels; begin += kFiltersAtOnce) {
    const Index left = job.channels - begin;
    const Index count = left < kFiltersAtOnce ? left : kFiltersAtOnce;
    for_each_part<T>(count, [&](Index c, Index lane) __attribute__((always_inline)) {
      VectorPart<T> positions[kPositions];
      VectorPart<T> filter[kTaps];
      load_positions(
          job.positions + (begin + c) * kBlockChannels + lane, job.position_step, positions);
      transform_square<kSide + 2, 3>(
          positions, filter, [](const auto& in, auto& out) { weight_gradient_line<T>(in, out); });
      store_positions(filter, taps[c] + lane, kBlockChannels);
    });
    add_taps<T>(taps,
                {job.filter_step, job.channel_step, job.filters, count},
                job.taps + begin * job.channel_step);
  }
}
