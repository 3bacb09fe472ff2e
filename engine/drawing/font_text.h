// Text in the fonts of this machine, by Pango and Cairo.

#pragma once

#include <string>

#include "engine/drawing/text.h"

namespace tessera::engine {

// What is missing for it, and what to install; empty where nothing is.
[[nodiscard]] std::string font_text_problem();

// As text_mask(), of printable text; only where there is no such problem.
[[nodiscard]] TextMask font_text_mask(const std::string& text, const TextLayout& layout);

}  // namespace tessera::engine
