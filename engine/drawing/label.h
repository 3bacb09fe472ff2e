// Labels on a picture: text on a background of its own, alone or at the corner of a frame.

#pragma once

#include <string>

#include "engine/drawing/text.h"

namespace tessera::engine {

struct LabelStyle {
  Colour paper = kBlack;  // the ink is what can be read on it
  Index text_height = 16;
};

// Draws a label of one line whose top left pixel is (row, col), or as near to it as the whole label
// lies inside the picture. Text that is wider than the picture loses its middle. Returns the pixels
// that the label covers.
Rectangle draw_label(
    RgbPicture& picture, const std::string& text, Index row, Index col, const LabelStyle& style);

// Draws a frame around `box`, of the colour `style.paper`, with the label above its top left
// corner, or inside where there is no room above. Returns the pixels of the label.
Rectangle draw_labelled_box(RgbPicture& picture,
                            const Rectangle& box,
                            const std::string& text,
                            const LabelStyle& style);

}  // namespace tessera::engine
