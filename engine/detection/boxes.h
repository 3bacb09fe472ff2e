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

// Intersection over union; 0 if the union is empty.
[[nodiscard]] double iou(const UnitBox& a, const UnitBox& b);

// Generalized IoU (Rezatofighi et al. 2019): IoU less the share of the smallest box around both
// that neither covers.
[[nodiscard]] double giou(const UnitBox& a, const UnitBox& b);

// The squared distance of the centres by the squared diagonal of the smallest box around both.
[[nodiscard]] double centre_distance(const UnitBox& a, const UnitBox& b);

// Distance IoU: IoU less centre_distance() to the power of `exponent`. Zheng et al. 2019 have 1;
// Darknet measures with 0.6, and learns with 1.
[[nodiscard]] double diou(const UnitBox& a, const UnitBox& b, double exponent);

// Complete IoU (Zheng et al. 2019): DIoU less a term for unlike ratios of width to height. `truth`
// comes second.
[[nodiscard]] double ciou(const UnitBox& box, const UnitBox& truth);

// The kind that a box loss measures by; plain IoU for squared errors.
[[nodiscard]] double iou_of_kind(partitioner::BoxLoss kind, const UnitBox& a, const UnitBox& b);

// What Darknet sends back of a loss of 1 - IoU: the direction that x, y, width and height of `box`
// are to move in. For width and height it is twice the derivative of the IoU, and the terms of DIoU
// and CIoU have the other sign there: it is no loss's gradient. `kind` is no squared error.
[[nodiscard]] UnitBox darknet_iou_delta(partitioner::BoxLoss kind,
                                        const UnitBox& box,
                                        const UnitBox& truth);

}  // namespace tessera::engine
