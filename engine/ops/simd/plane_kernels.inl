// Sums whose lanes are neighbouring pixels of a row: see PlaneSum and PlaneOuterSum in
// block_kernels.h.

// Pixels of a vector whose sums for some filters the registers hold at once.
template <class T, Index kFilters>
constexpr Index plane_width() {
  Index width = kVectorElements<T>;
  while (width < kBlockChannels && 2 * width / kVectorElements<T> * kFilters <= kPlaneSums) {
    width *= 2;
  }
  return width;
}

// Vectors at once, where the registers hold more than one.
template <class T, Index kFilters>
constexpr Index kPlaneVectors =
    2 * kBlockChannels / kVectorElements<T>* kFilters <= kPlaneSums ? 2 : 1;

// Of kWidth pixels from `pixel` on of each of the vectors.
template <class T, Index kFilters, Index kVectors, Index kWidth>
[[gnu::always_inline]] inline void sum_plane(
    const PlaneSum<T>& job,
    const Index* starts,
    Index pixel,
    T (&planes)[kVectors][kNarrowChannels][kBlockChannels]) {
  RegisterTile<T, kWidth> sums[kFilters][kVectors];
#pragma GCC unroll 8
  for (Index k = 0; k < kFilters; ++k) {
#pragma GCC unroll 2
    for (Index v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
      for (Index i = 0; i < RegisterTile<T, kWidth>::kParts; ++i) {
        sums[k][v].parts[i] = VectorPart<T, kWidth>{} + job.start[k];
      }
    }
  }
  for (Index t = 0; t < job.terms; ++t) {
    const T* in = job.in + job.offsets[t] + pixel;
    RegisterTile<T, kWidth> pixels[kVectors];
#pragma GCC unroll 2
    for (Index v = 0; v < kVectors; ++v) {
      pixels[v] = load_anywhere<kWidth>(in + starts[v]);
    }
#pragma GCC unroll 8
    for (Index k = 0; k < kFilters; ++k) {
      const T weight = job.weights[t * kNarrowChannels + k];
#pragma GCC unroll 2
      for (Index v = 0; v < kVectors; ++v) {
        add_product(sums[k][v], pixels[v], weight);
      }
    }
  }
#pragma GCC unroll 2
  for (Index v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (Index k = 0; k < kFilters; ++k) {
      store_register_tile(planes[v][k] + pixel, sums[k][v]);
    }
  }
}

template <class T, Index kFilters, Index kVectors>
void plane_vectors(const PlaneSum<T>& job, const Index* starts) {
  alignas(64) T planes[kVectors][kNarrowChannels][kBlockChannels];
  for (Index v = 0; v < kVectors; ++v) {
    for (Index k = kFilters; k < kNarrowChannels; ++k) {
      store_register_tile(planes[v][k], RegisterTile<T>{});
    }
  }
  constexpr Index kWidth = plane_width<T, kFilters>();
  for (Index pixel = 0; pixel < kBlockChannels; pixel += kWidth) {
    sum_plane<T, kFilters, kVectors, kWidth>(job, starts, pixel, planes);
  }
  for (Index v = 0; v < kVectors; ++v) {
    T* cells = job.cells + starts[v] * job.cells_step;
    transpose_any<T, false>(
        {planes[v][0], kBlockChannels, cells, job.cells_step}, job.cells_step, kBlockChannels);
  }
}

template <class T, Index kFilters>
void plane_row(const PlaneSum<T>& job) {
  constexpr Index kMost = kPlaneVectors<T, kFilters>;
  Index v = 0;
  for (; v + kMost <= job.vectors; v += kMost) {
    plane_vectors<T, kFilters, kMost>(job, job.starts + v);
  }
  for (; v < job.vectors; ++v) {
    plane_vectors<T, kFilters, 1>(job, job.starts + v);
  }
}

template <class T>
void plane_sum_any(const PlaneSum<T>& job, Index filters) {
  static_assert(kNarrowChannels == 8);
  if (filters <= 2) {
    plane_row<T, 2>(job);
  } else if (filters <= 4) {
    plane_row<T, 4>(job);
  } else if (filters <= 6) {
    plane_row<T, 6>(job);
  } else {
    plane_row<T, 8>(job);
  }
}

template <class T, Index kFilters, Index kCount>
void plane_outer(const PlaneOuterSum<T>& job) {
  RegisterTile<T> sums[kCount][kFilters];
#pragma GCC unroll 8
  for (Index t = 0; t < kCount; ++t) {
#pragma GCC unroll 8
    for (Index k = 0; k < kFilters; ++k) {
      sums[t][k] = load_register_tile(job.sums + (t * kNarrowChannels + k) * kBlockChannels);
    }
  }
  const T* gradient = job.gradient;
  for (Index row = 0; row < job.rows; ++row) {
    for (Index v = 0; v < job.vectors; ++v) {
      const T* in = job.in + row * job.in_row + job.starts[v];
#pragma GCC unroll 8
      for (Index t = 0; t < kCount; ++t) {
        const RegisterTile<T> pixels = load_anywhere<kBlockChannels>(in + job.offsets[t]);
#pragma GCC unroll 8
        for (Index k = 0; k < kFilters; ++k) {
          const RegisterTile<T> of_filter = load_register_tile(gradient + k * kBlockChannels);
          add_products(sums[t][k], of_filter, pixels);
        }
      }
      gradient += kNarrowChannels * kBlockChannels;
    }
  }
#pragma GCC unroll 8
  for (Index t = 0; t < kCount; ++t) {
#pragma GCC unroll 8
    for (Index k = 0; k < kFilters; ++k) {
      store_register_tile(job.sums + (t * kNarrowChannels + k) * kBlockChannels, sums[t][k]);
    }
  }
}

// As many terms at once as the registers hold sums of.
template <class T, Index kFilters>
void plane_outer_terms(PlaneOuterSum<T> job, Index terms) {
  constexpr Index kSums = kPlaneSums * kVectorElements<T> / kBlockChannels / kFilters;
  constexpr Index kMost = kSums < 1 ? 1 : kSums;
  for (; terms >= kMost; terms -= kMost) {
    plane_outer<T, kFilters, kMost>(job);
    job.offsets += kMost;
    job.sums += kMost * kNarrowChannels * kBlockChannels;
  }
  for (; terms > 0; --terms) {
    plane_outer<T, kFilters, 1>(job);
    job.offsets += 1;
    job.sums += kNarrowChannels * kBlockChannels;
  }
}

template <class T>
void plane_outer_sum_any(const PlaneOuterSum<T>& job, Index filters, Index terms) {
  if (filters <= 2) {
    plane_outer_terms<T, 2>(job, terms);
  } else if (filters <= 4) {
    plane_outer_terms<T, 4>(job, terms);
  } else if (filters <= 6) {
    plane_outer_terms<T, 6>(job, terms);
  } else {
    plane_outer_terms<T, 8>(job, terms);
  }
}
