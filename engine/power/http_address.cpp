#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string_view>

#include "engine/power/http_request.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

std::optional<int> number_up_to(std::string_view text, int most) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  const bool good = error == std::errc() && stopped == end && value >= 0 && value <= most;
  return good ? std::optional(value) : std::nullopt;
}

// Takes what comes after `mark` off the text; nothing where it has no such mark.
std::optional<std::string_view> cut_off(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(at + mark.size());
  text = text.substr(0, at);
  return rest;
}

}  // namespace

HttpAddress parse_http_address(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  constexpr int kMostPort = 65535;
  constexpr int kMostId = 999;
  const auto fail = [&] {
    throw InputError(
        fmt::format("\"{}\" is not the address of a plug: expected http://HOST, http://HOST:PORT "
                    "or, of one of several switches, http://HOST?id=1",
                    printable_start(text)));
  };
  std::string_view rest = text;
  if (rest.substr(0, kScheme.size()) == kScheme) {
    rest.remove_prefix(kScheme.size());
  }
  HttpAddress address;
  if (const auto id = cut_off(rest, "?id=")) {
    address.id = number_up_to(*id, kMostId).value_or(-1);
  }
  if (!rest.empty() && rest.back() == '/') {
    rest.remove_suffix(1);
  }
  const bool in_brackets = !rest.empty() && rest.front() == '[';
  const std::size_t bracket = rest.find(']');
  if (rest.find(':', in_brackets ? std::min(bracket, rest.size()) : 0) != std::string_view::npos) {
    address.port = number_up_to(*cut_off(rest, ":"), kMostPort).value_or(-1);
  }
  if (in_brackets && rest.size() > 2 && rest.back() == ']') {
    rest = rest.substr(1, rest.size() - 2);
  } else if (rest.find_first_of(":[]") != std::string_view::npos) {
    fail();
  }
  if (rest.empty() || rest.find_first_of("/?#@% \t") != std::string_view::npos || address.id < 0 ||
      address.port <= 0) {
    fail();
  }
  address.host = rest;
  return address;
}

}  // namespace tessera::engine
