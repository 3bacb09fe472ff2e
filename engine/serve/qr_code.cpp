#include "engine/serve/qr_code.h"

#include "partitioner/base/late_library.h"
#include "partitioner/base/region.h"

#ifdef TESSERA_HAS_QRENCODE
#include <memory>
#include <qrencode.h>
#endif

namespace tessera::engine {

std::vector<std::vector<bool>> qr_modules([[maybe_unused]] const std::string& text) {
  std::vector<std::vector<bool>> rows;
#ifdef TESSERA_HAS_QRENCODE
  LateLibrary library({"libqrencode.so.4"});
  decltype(&::QRcode_encodeString8bit) encode = nullptr;
  decltype(&::QRcode_free) release = nullptr;
  library.find(encode, "QRcode_encodeString8bit");
  library.find(release, "QRcode_free");
  if (!library.is_complete()) {
    return rows;
  }
  const std::unique_ptr<QRcode, decltype(release)> code(encode(text.c_str(), 0, QR_ECLEVEL_L),
                                                        release);
  const int side = code ? code->width : 0;
  for (int row = 0; row < side; ++row) {
    rows.emplace_back();
    for (int col = 0; col < side; ++col) {
      rows.back().push_back((code->data[row * side + col] & 1U) != 0);
    }
  }
#endif
  return rows;
}

std::vector<std::string> qr_lines(const std::vector<std::vector<bool>>& modules) {
  constexpr Index kMargin = 4;
  // Of the 256 colours those that no theme changes.
  constexpr const char* kBlackOnWhite = "\x1b[38;5;16;48;5;231m";
  constexpr const char* kAsBefore = "\x1b[0m";
  const Index side = std::ssize(modules);
  const auto is_dark = [&](Index row, Index col) {
    return row >= 0 && row < side && col >= 0 && col < side &&
           modules[static_cast<std::size_t>(row)][static_cast<std::size_t>(col)];
  };
  std::vector<std::string> lines;
  for (Index row = -kMargin; side > 0 && row < side + kMargin; row += 2) {
    std::string line = kBlackOnWhite;
    for (Index col = -kMargin; col < side + kMargin; ++col) {
      const bool upper = is_dark(row, col);
      const bool lower = is_dark(row + 1, col);
      line += upper && lower ? "█" : upper ? "▀" : lower ? "▄" : " ";
    }
    lines.push_back(line + kAsBefore);
  }
  return lines;
}

}  // namespace tessera::engine
