// Boxes on images, in pixels.

#pragma once

#include "partitioner/base/region.h"

namespace tessera::engine {

// Pixels, from the left upper corner of the image.
struct PixelBox {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  friend bool operator==(const PixelBox&, const PixelBox&) = default;
};

// Drawn by a person. Images and classes are numbered from 0.
struct TrueBox {
  Index image = 0;
  Index label = 0;
  PixelBox box;
  double area = 0;     // of the object, which may be less than that of the box
  bool crowd = false;  // of many objects, or ignored: what is found in it is not judged
};

// Found by a detector.
struct FoundBox {
  Index image = 0;
  Index label = 0;
  PixelBox box;
  double score = 0;
};

}  // namespace tessera::engine
