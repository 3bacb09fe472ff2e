// A text as a QR code that a telephone reads off a terminal.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

// Rows of modules, true where one is dark, without a margin; empty where it cannot be made: the
// text is too long, or libqrencode is not there, now or when this program was built.
[[nodiscard]] std::vector<std::vector<bool>> qr_modules(const std::string& text);

// Lines of half blocks, two rows of modules each, within a margin of four modules. Black and white
// are set as such, whatever the colours of the terminal are.
[[nodiscard]] std::vector<std::string> qr_lines(const std::vector<std::vector<bool>>& modules);

}  // namespace tessera::engine
