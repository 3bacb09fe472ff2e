#include "engine/chart/markup.h"

#include <cmath>
#include <fmt/format.h>

#include "partitioner/base/printable.h"

namespace tessera::engine {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : printable(text)) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

std::string coordinate(double value) {
  if (!std::isfinite(value)) {
    return "0";
  }
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) {
    text.resize(text.size() - 2);
  }
  return text == "-0" ? "0" : text;
}

}  // namespace tessera::engine
