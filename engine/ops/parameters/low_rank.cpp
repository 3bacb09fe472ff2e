#include "engine/ops/parameters/low_rank.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/base/random.h"

namespace tessera::engine {

using partitioner::LowRankShape;

namespace {

using Columns = std::vector<double>;  // (rows or cols, rank)

constexpr int kSteps = 2;

std::size_t at(Index place) {
  return static_cast<std::size_t>(place);
}

Columns fixed_start(const LowRankShape& shape) {
  constexpr std::uint64_t kSeed = 0x10f2a;
  Columns start(at(shape.cols * shape.rank));
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] = random_normal(kSeed, 0, i);
  }
  return start;
}

// Calls visit(row, col, value) for each element.
template <class T, class Visit>
void for_each_element(const LowRankShape& shape, std::span<const T> matrix, Visit visit) {
  Index element = 0;
  const auto elements = static_cast<Index>(matrix.size());
  for (Index row = 0; row < shape.rows; ++row) {
    for (Index col = 0; col < shape.cols && element < elements; ++col, ++element) {
      visit(row, col, static_cast<double>(matrix[at(element)]));
    }
  }
}

// M right
template <class T>
Columns times(const LowRankShape& shape, std::span<const T> matrix, const Columns& right) {
  Columns left(at(shape.rows * shape.rank));
  for_each_element(shape, matrix, [&](Index row, Index col, double value) {
    double* const to = left.data() + row * shape.rank;
    const double* const from = right.data() + col * shape.rank;
    for (Index k = 0; k < shape.rank; ++k) {
      to[k] += value * from[k];
    }
  });
  return left;
}

// M^T left
template <class T>
Columns transposed_times(const LowRankShape& shape,
                         std::span<const T> matrix,
                         const Columns& left) {
  Columns right(at(shape.cols * shape.rank));
  for_each_element(shape, matrix, [&](Index row, Index col, double value) {
    double* const to = right.data() + col * shape.rank;
    const double* const from = left.data() + row * shape.rank;
    for (Index k = 0; k < shape.rank; ++k) {
      to[k] += value * from[k];
    }
  });
  return right;
}

double dot(const Columns& columns, Index rank, Index a, Index b) {
  double sum = 0;
  for (std::size_t row = 0; row < columns.size(); row += at(rank)) {
    sum += columns[row + at(a)] * columns[row + at(b)];
  }
  return sum;
}

// Gram and Schmidt, twice for rounding's sake. A column that the others span becomes 0.
void orthonormalize(Columns& columns, Index rank) {
  constexpr double kSpanned = 1e-10;
  for (Index k = 0; k < rank; ++k) {
    const double before = std::sqrt(dot(columns, rank, k, k));
    for (Index other = 0; other < 2 * k; ++other) {
      const Index j = other % k;
      const double share = dot(columns, rank, j, k);
      for (std::size_t row = 0; row < columns.size(); row += at(rank)) {
        columns[row + at(k)] -= share * columns[row + at(j)];
      }
    }
    const double length = std::sqrt(dot(columns, rank, k, k));
    const double scale = length > kSpanned * before ? 1 / length : 0;
    for (std::size_t row = 0; row < columns.size(); row += at(rank)) {
      columns[row + at(k)] *= scale;
    }
  }
}

std::vector<float> rounded_columns(const Columns& columns) {
  std::vector<float> result(columns.size());
  std::transform(columns.begin(), columns.end(), result.begin(), [](double number) {
    return static_cast<float>(number);
  });
  return result;
}

}  // namespace

template <class T>
LowRankFactors low_rank_factors(const LowRankShape& shape, std::span<const T> matrix) {
  Columns right = fixed_start(shape);
  Columns left;
  for (int step = 0; step < kSteps; ++step) {
    left = times(shape, matrix, right);
    orthonormalize(left, shape.rank);
    right = transposed_times(shape, matrix, left);
  }
  return {shape, rounded_columns(left), rounded_columns(right)};
}

template <class T>
void add_product(const LowRankFactors& factors, T sign, std::span<T> matrix) {
  const LowRankShape& shape = factors.shape;
  Index element = 0;
  const auto elements = static_cast<Index>(matrix.size());
  for (Index row = 0; row < shape.rows; ++row) {
    const float* const left = factors.left.data() + row * shape.rank;
    for (Index col = 0; col < shape.cols && element < elements; ++col, ++element) {
      const float* const right = factors.right.data() + col * shape.rank;
      T sum = 0;
      for (Index k = 0; k < shape.rank; ++k) {
        sum += static_cast<T>(left[k]) * static_cast<T>(right[k]);
      }
      matrix[at(element)] += sign * sum;
    }
  }
}

template LowRankFactors low_rank_factors(const LowRankShape&, std::span<const float>);
template LowRankFactors low_rank_factors(const LowRankShape&, std::span<const double>);
template void add_product(const LowRankFactors&, float, std::span<float>);
template void add_product(const LowRankFactors&, double, std::span<double>);

}  // namespace tessera::engine
