// The look of the page around its charts.

#pragma once

#include <string_view>

namespace tessera::engine {

[[nodiscard]] std::string_view page_style();  // CSS; chart_style() comes first

}  // namespace tessera::engine
