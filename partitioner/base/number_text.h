// Numbers that are written as text.

#pragma once

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

namespace tessera {

// The text without blanks and line ends around it.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// All of the text as a number, infinite ones and NaN included; nothing where it is none.
template <class Number>
[[nodiscard]] std::optional<Number> parsed_number(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

// The same from `least` to `most`.
template <class Number>
[[nodiscard]] std::optional<Number> parsed_number(
    std::string_view text, Number least, Number most = std::numeric_limits<Number>::max()) {
  const std::optional<Number> number = parsed_number<Number>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

// All of the text, spaces around it apart, as a finite number; nothing where it is none.
[[nodiscard]] inline std::optional<double> finite_number(std::string_view text) {
  return parsed_number<double>(trimmed(text), std::numeric_limits<double>::lowest());
}

}  // namespace tessera
