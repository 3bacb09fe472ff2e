// The inner loops, compiled once for each vector width: a .cpp file per width names the target and a namespace and then
// includes this file. Nothing of the standard library in here: an inline function of it, compiled for a wide machine, could
// be the one that the linker keeps for all.

template <class T>
struct Vector {
  using Type [[gnu::vector_size(kLanes * sizeof(T)), gnu::aligned(kAlignment), gnu::may_alias]] = T;
};

template <class T>
using Lanes = typename Vector<T>::Type;

template <class T, Index kCount, Index kStep>
void sum_pixels(const WeightedSum<T>& job) {
  Lanes<T> sums[kCount] = {};
  const Index step = kStep == 0 ? job.in_step : kStep;
  for (Index i = 0; i < job.tap_count; ++i) {
    const T* in = job.in + job.taps[i].offset;
    const auto* weights = reinterpret_cast<const Lanes<T>*>(job.taps[i].weights);
    for (Index t = 0; t < job.terms; ++t) {
      const Lanes<T> weight = weights[t];
      const T* pixel = in + job.offsets[t];
#pragma GCC unroll 16
      for (Index p = 0; p < kCount; ++p) {
        sums[p] += weight * pixel[p * step];
      }
    }
  }
  auto* out = reinterpret_cast<Lanes<T>*>(job.sums);
#pragma GCC unroll 16
  for (Index p = 0; p < kCount; ++p) {
    out[p] = sums[p];
  }
}

template <class T, Index kCount, Index kStep>
void dispatch_pixels(const WeightedSum<T>& job, Index pixels) {
  if constexpr (kCount > 0) {
    if (pixels == kCount) {
      sum_pixels<T, kCount, kStep>(job);
    } else {
      dispatch_pixels<T, kCount - 1, kStep>(job, pixels);
    }
  }
}

template <class T>
void sum_any(const WeightedSum<T>& job, Index pixels) {
  if (job.in_step == kLanes) {
    dispatch_pixels<T, kDensePixels, kLanes>(job, pixels);
  } else {
    dispatch_pixels<T, kPixels, 0>(job, pixels);
  }
}

template <class T, Index kCount>
void outer_terms(const OuterSum<T>& job) {
  auto* totals = reinterpret_cast<Lanes<T>*>(job.sums);
  Lanes<T> sums[kCount];
  Index offset[kCount];
#pragma GCC unroll 8
  for (Index t = 0; t < kCount; ++t) {
    sums[t] = totals[t];
    offset[t] = job.offsets[t];
  }
  for (Index row = 0; row < job.rows; ++row) {
    const auto* gradient = reinterpret_cast<const Lanes<T>*>(job.gradient + row * job.gradient_row);
    const T* in = job.in + row * job.in_row;
    for (Index col = 0; col < job.cols; ++col) {
      const Lanes<T> lanes = gradient[col];
#pragma GCC unroll 8
      for (Index t = 0; t < kCount; ++t) {
        sums[t] += lanes * in[offset[t]];
      }
      in += job.in_step;
    }
  }
#pragma GCC unroll 8
  for (Index t = 0; t < kCount; ++t) {
    totals[t] = sums[t];
  }
}

template <class T, Index kCount>
void dispatch_terms(const OuterSum<T>& job, Index terms) {
  if constexpr (kCount > 0) {
    if (terms == kCount) {
      outer_terms<T, kCount>(job);
    } else {
      dispatch_terms<T, kCount - 1>(job, terms);
    }
  }
}

void sum(const WeightedSum<float>& job, Index pixels) { sum_any(job, pixels); }
void sum(const WeightedSum<double>& job, Index pixels) { sum_any(job, pixels); }
void outer(const OuterSum<float>& job, Index terms) {
  dispatch_terms<float, kOuterTerms>(job, terms);
}
void outer(const OuterSum<double>& job, Index terms) {
  dispatch_terms<double, kOuterTerms>(job, terms);
}
