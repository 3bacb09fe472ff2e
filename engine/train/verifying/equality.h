// Does a partition compute what one tile computes? The same random signed weights and pictures
// through both, in double precision and in single, compared tensor by tensor. This is the promise
// of the whole program, made checkable.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "partitioner/network/norm_rule.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

// Bounds of the design.
inline constexpr double kDoubleBound =
    1e-10;  // of any difference, relative to the tensor's largest element
inline constexpr double kSingleErrorRatio =
    4;  // error of a partition's gradient against that of one tile, both against double
// Where one tile's gradient in single precision is all rounding, the last digits in double
// precision are too, for the same reason and by as much less as that rounds more finely: they may
// differ by the same ratio of it, even if that is more than kDoubleBound.
inline constexpr double kDoubleRounding = 0x1p-29;  // of what single precision rounds
inline constexpr double kSingleFloor = 1e-5;        // errors that are not worth a ratio
// A sign, an argmax or the object of a cell that rounding flips in one of two runs and not in the
// other moves gradients by some percent of their largest element; where any did, that is the bound,
// and the number of flips is shown.
inline constexpr double kFlipBound = 0.1;

struct EqualityLine {
  std::string tensor;
  double double_difference = 0;      // between partition and one tile, both in double
  double single_error = 0;           // of the partition in single, against one tile in double
  double one_tile_single_error = 0;  // of one tile in single, likewise
  bool within_bounds = true;
};

struct EqualityReport {
  std::vector<EqualityLine> lines;  // all maps, loss, gradients, running statistics
  Index cells = 0;                  // of all maps, forward, in single precision
  Index different_bits = 0;         // of them, between partition and one tile
  Index flipped_signs =
      0;  // of values before an activation's kink, between partition and one tile in single
  Index flipped_argmax = 0;  // of max-pool windows
  Index single_flipped_signs =
      0;  // of one tile, between single and double: what rounding does by itself
  Index single_flipped_argmax = 0;
  Index other_objects = 0;  // of cells of [yolox] heads that have got another one, or none
  Index single_other_objects = 0;
  bool bits_must_agree = true;  // direct kernels, no batch normalisation
  bool within_bounds = true;
};

struct EqualityOptions {
  const partitioner::Network& network;
  const partitioner::Partition& partition;
  Index batch = 1;
  std::uint64_t seed = 1;
  partitioner::NormRule norm = {};
};

// All ranks call this together; the report is on rank 0.
[[nodiscard]] EqualityReport check_equality(const EqualityOptions& options,
                                            const Communicator& communicator);

}  // namespace tessera::engine
