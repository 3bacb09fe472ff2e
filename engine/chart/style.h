// What charts look like, for light and dark, screen and print.

#pragma once

#include <string_view>

namespace tessera::engine {

// CSS: the colours as variables of :root, then the rules of drawings, legends and tables.
[[nodiscard]] std::string_view chart_style();

// JavaScript, for a <script> of a page: what lines show below the pointer. Without it they are all
// there but for that. Drawings that come later are its function addReadOut's.
[[nodiscard]] std::string_view chart_script();

// Its SHA-256 as a Content-Security-Policy names it: "sha256-...".
[[nodiscard]] std::string_view chart_script_hash();

}  // namespace tessera::engine
