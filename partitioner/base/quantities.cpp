#include "partitioner/base/quantities.h"

#include <array>
#include <fmt/format.h>

namespace tessera {

namespace {

std::string readable(double value, double step, const std::array<const char*, 6>& units) {
  constexpr double kRoundsToFourDigits = 999.95;
  std::size_t unit = 0;
  while (value >= kRoundsToFourDigits && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}{}", value, units[unit])
                   : fmt::format("{:.1f}{}", value, units[unit]);
}

}  // namespace

std::string readable_bytes(Index bytes) {
  return readable(static_cast<double>(bytes), 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string readable_count(Index count) {
  return readable(static_cast<double>(count), 1000, {"", " k", " M", " G", " T", " P"});
}

std::string mebibytes(Index bytes) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  return fmt::format("{:.1f}", static_cast<double>(bytes) / kMebibyte);
}

std::string share_of(Index part, Index whole) {
  return part == 0 ? "0 %"
                   : fmt::format("{:.1f} %",
                                 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string counted(Index count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace tessera
