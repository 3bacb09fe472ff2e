// A matrix by two factors of few columns, M ~ L R^T with orthonormal columns of L: two steps of
// subspace iteration from a fixed start (Halko, Martinsson, Tropp 2011), as PowerSGD has it (Vogels
// et al. 2019), but from the same start each time, so that nothing has to be remembered.

#pragma once

#include <span>
#include <vector>

#include "partitioner/partition/compression.h"

namespace tessera::engine {

struct LowRankFactors {
  partitioner::LowRankShape shape;
  std::vector<float> left;   // (rows, rank)
  std::vector<float> right;  // (cols, rank)
};

// Factors of a matrix in rows, whose last row may end early: what is missing counts as 0.
template <class T>
[[nodiscard]] LowRankFactors low_rank_factors(const partitioner::LowRankShape& shape,
                                              std::span<const T> matrix);

// matrix += sign * L R^T, as far as the matrix reaches
template <class T>
void add_product(const LowRankFactors& factors, T sign, std::span<T> matrix);

}  // namespace tessera::engine
