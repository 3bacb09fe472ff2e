#include "engine/ops/parameters/compressed_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "engine/ops/parameters/low_rank.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::Compression;
using partitioner::ElementRun;
using Kind = partitioner::Compression::Kind;

namespace {

// Numbers one after another in a message, at any alignment.
template <class Number>
class Writer {
 public:
  explicit Writer(std::byte* to) : to_(to) {}
  void put(Number number) {
    std::memcpy(to_, &number, sizeof(Number));
    to_ += sizeof(Number);
  }
  [[nodiscard]] std::byte* end() const { return to_; }

 private:
  std::byte* to_;
};

template <class Number>
Number number_at(const std::byte* from, Index place) {
  Number number;
  std::memcpy(&number, from + place * static_cast<Index>(sizeof(Number)), sizeof(Number));
  return number;
}

template <class T>
void pack_plain(std::span<T> values, std::byte* to) {
  Writer<float> writer(to);
  for (T& value : values) {
    const auto sent = static_cast<float>(value);
    writer.put(sent);
    value -= static_cast<T>(sent);
  }
}

template <class T>
void add_plain(const std::byte* from, std::span<T> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] += static_cast<T>(number_at<float>(from, static_cast<Index>(i)));
  }
}

// Magnitudes are in the order of their bits, and what is not a number lies beyond the infinite.
template <class T>
std::int32_t magnitude_bits(T value) {
  return std::bit_cast<std::int32_t>(static_cast<float>(value)) & 0x7fffffff;
}

// The places of the `kept` largest magnitudes in rising order; of equal ones the first.
template <class T>
std::vector<std::uint32_t> largest_places(std::span<const T> values, Index kept) {
  std::vector<std::int32_t> magnitudes(values.size());
  std::transform(values.begin(), values.end(), magnitudes.begin(), magnitude_bits<T>);
  std::int32_t* const first = magnitudes.data();
  std::int32_t* const last = first + kept - 1;
  std::nth_element(first, last, first + magnitudes.size(), std::greater<>());
  const std::int32_t least = *last;
  auto equal = kept - std::count_if(first, last, [least](std::int32_t magnitude) {
                 return magnitude > least;
               });
  std::vector<std::uint32_t> places;
  places.reserve(static_cast<std::size_t>(kept));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int32_t magnitude = magnitude_bits(values[i]);
    if (magnitude > least || (magnitude == least && equal-- > 0)) {
      places.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return places;
}

template <class T>
void pack_largest(Index kept, std::span<T> values, std::byte* to) {
  const std::vector<std::uint32_t> places = largest_places(std::span<const T>(values), kept);
  Writer<std::uint32_t> numbers(to);
  for (const std::uint32_t place : places) {
    numbers.put(place);
  }
  Writer<float> sent(numbers.end());
  for (const std::uint32_t place : places) {
    const auto value = static_cast<float>(values[place]);
    sent.put(value);
    values[place] -= static_cast<T>(value);
  }
}

template <class T>
void add_largest(Index kept, const std::byte* from, std::span<T> values) {
  const std::byte* const sent = from + kept * static_cast<Index>(sizeof(std::uint32_t));
  for (Index i = 0; i < kept; ++i) {
    const auto place = number_at<std::uint32_t>(from, i);
    expects(place < values.size(), "a place in the run");
    values[place] += static_cast<T>(number_at<float>(sent, i));
  }
}

constexpr std::size_t kBits = 8;

template <class T>
void pack_signs(std::span<T> values, std::byte* to) {
  double sum = 0;
  for (const T value : values) {
    sum += std::abs(static_cast<double>(value));
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(values.size()));
  std::memcpy(to, &mean, sizeof(mean));
  std::byte* const signs = to + sizeof(mean);
  for (std::size_t first = 0; first < values.size(); first += kBits) {
    unsigned bits = 0;
    for (std::size_t i = first; i < std::min(first + kBits, values.size()); ++i) {
      const bool negative = values[i] < 0;
      bits |= (negative ? 1U : 0U) << (i - first);
      values[i] -= static_cast<T>(negative ? -mean : mean);
    }
    signs[first / kBits] = static_cast<std::byte>(bits);
  }
}

template <class T>
void add_signs(const std::byte* from, std::span<T> values) {
  const auto mean = number_at<float>(from, 0);
  const std::byte* const signs = from + sizeof(mean);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool negative = (static_cast<unsigned>(signs[i / kBits]) >> (i % kBits) & 1U) != 0;
    values[i] += static_cast<T>(negative ? -mean : mean);
  }
}

template <class T>
void pack_factors(const partitioner::LowRankShape& shape, std::span<T> values, std::byte* to) {
  const LowRankFactors factors = low_rank_factors(shape, std::span<const T>(values));
  std::memcpy(to, factors.left.data(), factors.left.size() * sizeof(float));
  std::memcpy(to + factors.left.size() * sizeof(float),
              factors.right.data(),
              factors.right.size() * sizeof(float));
  add_product(factors, T(-1), values);
}

template <class T>
void add_factors(const partitioner::LowRankShape& shape,
                 const std::byte* from,
                 std::span<T> values) {
  LowRankFactors factors;
  factors.shape = shape;
  factors.left.resize(static_cast<std::size_t>(shape.rows * shape.rank));
  factors.right.resize(static_cast<std::size_t>(shape.cols * shape.rank));
  std::memcpy(factors.left.data(), from, factors.left.size() * sizeof(float));
  std::memcpy(factors.right.data(),
              from + factors.left.size() * sizeof(float),
              factors.right.size() * sizeof(float));
  add_product(factors, T(1), values);
}

}  // namespace

template <class T>
void pack_run(const Compression& compression,
              Index row,
              std::span<T> values,
              std::span<std::byte> to) {
  const ElementRun run{static_cast<Index>(values.size()), row};
  expects(static_cast<Index>(to.size()) == packed_bytes(compression, run, sizeof(T)),
          "room for a packed run");
  if (values.empty()) {
    return;
  }
  if (travels_plain(compression, run)) {
    pack_plain(values, to.data());
  } else if (compression.kind == Kind::TopK) {
    pack_largest(kept_elements(compression, run.elements), values, to.data());
  } else if (compression.kind == Kind::Sign) {
    pack_signs(values, to.data());
  } else {
    pack_factors(low_rank_shape(compression, run), values, to.data());
  }
}

template <class T>
void add_packed_run(const Compression& compression,
                    Index row,
                    std::span<const std::byte> from,
                    std::span<T> values) {
  const ElementRun run{static_cast<Index>(values.size()), row};
  if (values.empty()) {
    return;
  }
  if (travels_plain(compression, run)) {
    add_plain(from.data(), values);
  } else if (compression.kind == Kind::TopK) {
    add_largest(kept_elements(compression, run.elements), from.data(), values);
  } else if (compression.kind == Kind::Sign) {
    add_signs(from.data(), values);
  } else {
    add_factors(low_rank_shape(compression, run), from.data(), values);
  }
}

template void pack_run(const Compression&, Index, std::span<float>, std::span<std::byte>);
template void pack_run(const Compression&, Index, std::span<double>, std::span<std::byte>);
template void add_packed_run(const Compression&,
                             Index,
                             std::span<const std::byte>,
                             std::span<float>);
template void add_packed_run(const Compression&,
                             Index,
                             std::span<const std::byte>,
                             std::span<double>);

}  // namespace tessera::engine
