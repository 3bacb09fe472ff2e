// Text in a built-in font of ASCII: what is left where the machine has no fonts.

#pragma once

#include <string>

#include "engine/drawing/text.h"

namespace tessera::engine {

// As text_mask(), of printable text. Marks above and below letters are left out; what is not ASCII
// then is a question mark, and unknown.
[[nodiscard]] TextMask bitmap_text_mask(const std::string& text, const TextLayout& layout);

}  // namespace tessera::engine
