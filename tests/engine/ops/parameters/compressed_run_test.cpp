// Compressed runs of elements: what is sent and what is left.

#include "engine/ops/parameters/compressed_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "engine/ops/parameters/packed_runs.h"

using namespace tessera;          // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::engine;  // NOLINT(google-build-using-namespace): likewise
using partitioner::Compression;
using Kind = partitioner::Compression::Kind;

namespace {

constexpr Compression kTopK{.kind = Kind::TopK, .fraction = 0.1};
constexpr Compression kSign{.kind = Kind::Sign};
constexpr Compression kLowRank{.kind = Kind::LowRank, .rank = 2};
constexpr Compression kAll[] = {kTopK, kSign, kLowRank};

template <class T>
std::vector<T> random_row(std::size_t count, std::uint64_t seed) {
  std::vector<T> row(count);
  for (std::size_t i = 0; i < count; ++i) {
    row[i] = static_cast<T>(random_normal(seed, 0, i));
  }
  return row;
}

// What a message of the values carries; they become what it leaves.
template <class T>
std::vector<T> sent(const Compression& compression, Index row, std::vector<T>& values) {
  std::vector<std::byte> message(static_cast<std::size_t>(
      packed_bytes(compression, {static_cast<Index>(values.size()), row}, sizeof(T))));
  pack_run<T>(compression, row, values, message);
  std::vector<T> numbers(values.size());
  add_packed_run<T>(compression, row, message, numbers);
  return numbers;
}

double norm(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) {
    sum += number * number;
  }
  return std::sqrt(sum);
}

TEST_CASE("what is sent and what is left are together what there was") {
  for (const Compression& compression : kAll) {
    for (const std::size_t count : {1U, 7U, 64U, 1000U}) {
      for (const Index row : {1, 9, 25}) {
        const std::vector<double> all = random_row<double>(count, count);
        std::vector<double> left = all;
        const std::vector<double> carried = sent(compression, row, left);
        for (std::size_t i = 0; i < count; ++i) {
          CHECK(carried[i] + left[i] == doctest::Approx(all[i]).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("over steps, all that was sent and what is left are the sum of what there was, exactly") {
  // Multiples of 1/64 and powers of two of them: sums of single numbers have no rounding.
  for (const Compression& compression :
       {kTopK, Compression{.kind = Kind::TopK, .fraction = 0.01}}) {
    constexpr std::size_t kCount = 500;
    std::vector<float> residual(kCount);
    std::vector<float> carried(kCount);
    std::vector<float> sum(kCount);
    for (std::uint64_t step = 0; step < 50; ++step) {
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto number = static_cast<float>(random_bits(step, i) % 129) / 64 - 1;
        residual[i] += number;
        sum[i] += number;
      }
      const std::vector<float> now = sent(compression, 5, residual);
      for (std::size_t i = 0; i < kCount; ++i) {
        carried[i] += now[i];
        CHECK(carried[i] + residual[i] == sum[i]);
      }
    }
  }
}

TEST_CASE("the largest are sent, of equal ones the first") {
  std::vector<float> values{0.5F, -3, 1, -1, 2, 1, 0, 1, -1, 0.25F};
  const Compression three{.kind = Kind::TopK, .fraction = 0.3};
  CHECK(sent(three, 1, values) == std::vector<float>{0, -3, 1, 0, 2, 0, 0, 0, 0, 0});
  CHECK(values == std::vector<float>{0.5F, 0, 0, -1, 0, 1, 0, 1, -1, 0.25F});
}

TEST_CASE("signs carry the mean magnitude") {
  std::vector<float> values(64, 1);
  values[3] = -5;
  values[10] = 0;
  const float mean = (62.0F + 5) / 64;
  const std::vector<float> carried = sent(kSign, 1, values);
  CHECK(carried[0] == mean);
  CHECK(carried[3] == -mean);
  CHECK(carried[10] == mean);
}

TEST_CASE(
    "a matrix of low rank is carried whole, and any other better than by its largest column") {
  constexpr Index kRows = 20;
  constexpr Index kCols = 30;
  std::vector<double> matrix(kRows * kCols);
  for (Index k = 0; k < 2; ++k) {
    for (Index row = 0; row < kRows; ++row) {
      for (Index col = 0; col < kCols; ++col) {
        matrix[static_cast<std::size_t>(row * kCols + col)] +=
            random_normal(1, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(row)) *
            random_normal(2, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(col));
      }
    }
  }
  const double before = norm(matrix);
  (void)sent(kLowRank, kCols, matrix);
  CHECK(norm(matrix) < 1e-5 * before);  // factors are rounded to single precision
  std::vector<double> other = random_row<double>(kRows * kCols, 3);
  const double all = norm(other);
  (void)sent(kLowRank, kCols, other);
  CHECK(norm(other) < 0.97 * all);
}

TEST_CASE("messages never leave more than there was") {
  for (const Compression& compression : kAll) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::vector<double> values = random_row<double>(300, seed);
      const double before = norm(values);
      (void)sent(compression, 12, values);
      CHECK(norm(values) < before);
    }
  }
}

TEST_CASE("zeros and numbers that are none go through") {
  for (const Compression& compression : kAll) {
    std::vector<float> zeros(100);
    CHECK(sent(compression, 10, zeros) == std::vector<float>(100));
    std::vector<float> bad(100, 1);
    bad[17] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> carried = sent(compression, 10, bad);
    CHECK(
        std::any_of(carried.begin(), carried.end(), [](float value) { return std::isnan(value); }));
  }
}

TEST_CASE("several runs in one message come out as they went in") {
  for (const Compression& compression : {Compression::Half, kTopK, kSign, kLowRank}) {
    std::vector<float> first = random_row<float>(70, 1);
    std::vector<float> second = random_row<float>(3, 2);
    std::vector<float> sum = first;
    sum.insert(sum.end(), second.begin(), second.end());
    const std::vector<ElementValues<float>> runs{{first, 7}, {second, 1}};
    std::size_t bytes = 0;
    for (const ElementValues<float>& run : runs) {
      bytes += static_cast<std::size_t>(
          packed_bytes(compression, {static_cast<Index>(run.values.size()), run.row}, 4));
    }
    std::vector<std::byte> head(static_cast<std::size_t>(packing_overhead_bytes(compression)));
    std::vector<std::byte> message(bytes);
    pack_runs(compression, runs, {head, message});
    add_packed_runs<float>(compression, {head, message}, runs);  // onto what was left
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const float now = i < first.size() ? first[i] : second[i - first.size()];
      CHECK(now == doctest::Approx(sum[i]).epsilon(1e-5));
    }
  }
}

}  // namespace
