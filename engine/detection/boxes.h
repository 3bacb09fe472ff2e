// Boxes on an image, and how much two of them have in common. Centres and sizes are fractions of
// the image.

#pragma once

#include "partitioner/network/heads.h"

namespace tessera::engine {

// Fractions of the image's width and height.
struct UnitBox {
  double x = 0;  // of the centre
  double y = 0;
  double width = 0;
  double height = 0;
  friend bool operator==(const UnitBox&, const UnitBox&) = default;
};

// The area that both cover by the area that either does: 0 where that is nothing.
[[nodiscard]] double overlap(const UnitBox& a, const UnitBox& b);

// Less the share of the smallest box around both that neither covers (Rezatofighi et al. 2019).
[[nodiscard]] double generalized_overlap(const UnitBox& a, const UnitBox& b);

// The squared distance of the centres by the squared diagonal of the smallest box around both.
[[nodiscard]] double centre_distance(const UnitBox& a, const UnitBox& b);

// Overlap less centre_distance() to the power of `exponent`. Zheng et al. 2019 have 1; Darknet
// measures with 0.6, and learns with 1.
[[nodiscard]] double distance_overlap(const UnitBox& a, const UnitBox& b, double exponent);

// Less also what the ratios of width to height differ by. `truth` comes second.
[[nodiscard]] double complete_overlap(const UnitBox& box, const UnitBox& truth);

// By the kind; the overlap itself for squared errors.
[[nodiscard]] double overlap_of_kind(partitioner::BoxLoss kind, const UnitBox& a, const UnitBox& b);

// What Darknet sends back of a loss of 1 - overlap: the direction that x, y, width and height of
// `box` are to move in. For width and height it is twice the derivative of the overlap, and the
// terms of DIoU and CIoU have the other sign there: it is no loss's gradient. `kind` is one of the
// overlaps.
[[nodiscard]] UnitBox darknet_overlap_delta(partitioner::BoxLoss kind,
                                            const UnitBox& box,
                                            const UnitBox& truth);

}  // namespace tessera::engine
