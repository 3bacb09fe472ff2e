// A picture with text in a bar below it, as a PNG file for people to look at.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/data/pictures/picture.h"
#include "engine/drawing/rgb_picture.h"

namespace tessera::engine {

// A picture held with so many pixels is as good as one with more.
inline constexpr Detail kDrawnDetail{1024, 1024};

struct CaptionedPicture {
  std::vector<std::byte> png;  // (R, G, B) of 8 bits
  Index unknown = 0;           // characters of the caption that no font of this machine has
};

// Small pictures are enlarged and large ones reduced, each by an integer, to at most 1024 pixels a
// side. The caption takes as many lines as it needs, up to six; of a longer one the middle is left
// out.
[[nodiscard]] CaptionedPicture captioned_picture(const Picture& picture,
                                                 const std::string& caption);

// A frame with a label, from the left upper corner to the right lower one, in fractions of the
// picture.
struct LabelledBox {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  std::string text;
  Colour colour;
};

// The picture with frames, as a PNG file; enlarged or reduced as above.
[[nodiscard]] std::vector<std::byte> boxed_picture(const Picture& picture,
                                                   const std::vector<LabelledBox>& boxes);

}  // namespace tessera::engine
