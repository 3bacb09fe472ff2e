// How gradients, and changes of parameters, travel in fewer bytes than they have. What a message
// leaves out is added to what is sent the next time (error feedback: Seide et al. 2014, Karimireddy
// et al. 2019), so over the steps nothing is lost.
//
// A message holds runs of elements of several tensors, and each run is compressed by itself. All
// numbers of a compressed message are in single precision.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "partitioner/base/region.h"

namespace tessera::partitioner {

struct Compression {
  enum class Kind {
    Exact,    // as it is computed
    Half,     // 16 bits per element, one scale per message
    TopK,     // of a run the `fraction` that is largest, with its places
    Sign,     // a bit per element and the mean magnitude of the run (Bernstein et al. 2018)
    LowRank,  // a run as a matrix, by two factors of `rank` columns (Vogels et al. 2019)
  };
  Kind kind = Kind::Exact;
  double fraction = 0;
  Index rank = 0;

  static const Compression Exact;
  static const Compression Half;

  // Whether runs are compressed each by itself.
  [[nodiscard]] bool by_runs() const { return kind > Kind::Half; }
  friend bool operator==(const Compression&, const Compression&) = default;
};
inline constexpr Compression Compression::Exact{};
inline constexpr Compression Compression::Half{.kind = Kind::Half};

inline constexpr Index kMostLowRank = 256;
inline constexpr const char* kCompressionForms = "exact, half, topk:F, sign, low-rank:R";

// "exact", "half", "topk:0.01", "sign", "low-rank:2"; nothing where the text is none of these.
[[nodiscard]] std::string to_text(const Compression& compression);
[[nodiscard]] std::optional<Compression> compression_named(std::string_view text);

// Elements of one tensor that follow each other, whose rows have `row` elements.
struct ElementRun {
  Index elements = 0;
  Index row = 1;
};

// Elements of a run of TopK that travel.
[[nodiscard]] Index kept_elements(const Compression& compression, Index elements);

// A run of LowRank as a matrix: a last row that is not full is filled up with 0.
struct LowRankShape {
  Index rows = 0;
  Index cols = 0;
  Index rank = 0;
};
[[nodiscard]] LowRankShape low_rank_shape(const Compression& compression, const ElementRun& run);

// Whether a run travels as single numbers: packed it would take no less.
[[nodiscard]] bool travels_plain(const Compression& compression, const ElementRun& run);

// Bytes of a run in a message.
[[nodiscard]] Index packed_bytes(const Compression& compression,
                                 const ElementRun& run,
                                 Index scalar_bytes);
// Bytes of a message beside its runs; nothing is sent where there are none.
[[nodiscard]] Index packing_overhead_bytes(const Compression& compression);

}  // namespace tessera::partitioner
