#include "partitioner/partition/compression.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "partitioner/base/number_text.h"

namespace tessera::partitioner {

namespace {

constexpr Index kFloatBytes = 4;
constexpr Index kPlaceBytes = 4;
constexpr Index kHalfBytes = 2;
constexpr Index kBitsPerByte = 8;

using Kind = Compression::Kind;

// Bytes of a run that does not travel plain.
Index compressed_bytes(const Compression& compression, const ElementRun& run) {
  switch (compression.kind) {
    case Kind::TopK:
      return (kFloatBytes + kPlaceBytes) * kept_elements(compression, run.elements);
    case Kind::Sign:
      return kFloatBytes + (run.elements + kBitsPerByte - 1) / kBitsPerByte;
    case Kind::LowRank: {
      const LowRankShape shape = low_rank_shape(compression, run);
      return kFloatBytes * shape.rank * (shape.rows + shape.cols);
    }
    case Kind::Exact:
    case Kind::Half:
      break;
  }
  return kFloatBytes * run.elements;
}

}  // namespace

std::string to_text(const Compression& compression) {
  switch (compression.kind) {
    case Kind::Exact:
      return "exact";
    case Kind::Half:
      return "half";
    case Kind::TopK:
      return fmt::format("topk:{}", compression.fraction);
    case Kind::Sign:
      return "sign";
    case Kind::LowRank:
      return fmt::format("low-rank:{}", compression.rank);
  }
  return "";
}

std::optional<Compression> compression_named(std::string_view text) {
  for (const Compression& simple :
       {Compression::Exact, Compression::Half, Compression{.kind = Kind::Sign}}) {
    if (text == to_text(simple)) {
      return simple;
    }
  }
  constexpr std::string_view kTopK = "topk:";
  constexpr std::string_view kLowRank = "low-rank:";
  if (text.starts_with(kTopK)) {
    const auto fraction = parsed_number<double>(text.substr(kTopK.size()));
    if (fraction && *fraction > 0 && *fraction <= 1) {
      return Compression{.kind = Kind::TopK, .fraction = *fraction};
    }
  }
  if (text.starts_with(kLowRank)) {
    const auto rank = parsed_number<Index>(text.substr(kLowRank.size()));
    if (rank && *rank >= 1 && *rank <= kMostLowRank) {
      return Compression{.kind = Kind::LowRank, .rank = *rank};
    }
  }
  return std::nullopt;
}

Index kept_elements(const Compression& compression, Index elements) {
  const auto kept =
      static_cast<Index>(std::ceil(compression.fraction * static_cast<double>(elements)));
  return std::clamp<Index>(kept, std::min<Index>(elements, 1), elements);
}

LowRankShape low_rank_shape(const Compression& compression, const ElementRun& run) {
  const Index cols = std::max<Index>(std::min(run.row, run.elements), 1);
  const Index rows = (run.elements + cols - 1) / cols;
  return {rows, cols, std::min({compression.rank, rows, cols})};
}

bool travels_plain(const Compression& compression, const ElementRun& run) {
  return compressed_bytes(compression, run) >= kFloatBytes * run.elements;
}

Index packed_bytes(const Compression& compression, const ElementRun& run, Index scalar_bytes) {
  if (compression.kind == Kind::Exact) {
    return scalar_bytes * run.elements;
  }
  if (compression.kind == Kind::Half) {
    return kHalfBytes * run.elements;
  }
  return std::min(compressed_bytes(compression, run), kFloatBytes * run.elements);
}

Index packing_overhead_bytes(const Compression& compression) {
  return compression.kind == Kind::Half ? kFloatBytes : 0;
}

}  // namespace tessera::partitioner
