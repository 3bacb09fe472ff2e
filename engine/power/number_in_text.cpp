#include "engine/power/number_in_text.h"

#include <charconv>
#include <cmath>

namespace tessera::engine {

std::optional<double> number_in(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t end = text.find_last_not_of(kSpace) + 1;
  double value = 0;
  const auto [stopped, error] = std::from_chars(text.data() + begin, text.data() + end, value);
  if (error != std::errc() || stopped != text.data() + end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace tessera::engine
