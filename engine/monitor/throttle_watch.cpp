#include "engine/monitor/throttle_watch.h"

#include <array>
#include <cmath>
#include <fmt/format.h>

namespace tessera::engine {

namespace {

std::string words_of_flags(unsigned flags) {
  constexpr std::array kWords{
      "low voltage", "clock limited", "throttled", "at the soft limit of temperature"};
  std::string text;
  for (std::size_t bit = 0; bit < kWords.size(); ++bit) {
    if ((flags >> bit & 1U) != 0) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", kWords[bit]);
    }
  }
  return text;
}

std::string words_of_heat(const DeviceSample& sample) {
  std::string text;
  if (std::isfinite(sample.temperature_c)) {
    text += fmt::format("; {:.0f} °C", sample.temperature_c);
  }
  if (std::isfinite(sample.clock_hz)) {
    text += fmt::format("; {:.0f} MHz", 1e-6 * sample.clock_hz);
  }
  return text;
}

}  // namespace

std::optional<std::string> ThrottleWatch::look(const DeviceSample& sample) {
  constexpr unsigned kNow = 0xf;
  constexpr double kOver_s = 10;
  if (!std::isfinite(sample.throttled)) {
    return std::nullopt;
  }
  const unsigned flags = static_cast<unsigned>(sample.throttled) & kNow;
  if (flags != 0) {
    last_s_ = sample.t_s;
    if ((flags & ~told_) == 0) {
      return std::nullopt;
    }
    began_s_ = told_ == 0 ? sample.t_s : began_s_;
    told_ |= flags;
    return fmt::format("slowed down: {}{}", words_of_flags(flags), words_of_heat(sample));
  }
  if (told_ == 0 || sample.t_s - last_s_ < kOver_s) {
    return std::nullopt;
  }
  const std::string text = fmt::format("no longer slowed down ({}), after {:.0f} s{}",
                                       words_of_flags(told_),
                                       last_s_ - began_s_,
                                       words_of_heat(sample));
  told_ = 0;
  return text;
}

}  // namespace tessera::engine
