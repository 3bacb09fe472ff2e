#include "engine/processes/host_list.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <sstream>

#include "engine/processes/addresses.h"
#include "engine/system/host_name.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

// "fe80::1" has colons of its own: what follows the last one is a number of ranks only where the
// rest is a name or "[ADDRESS]". Without a number the second is empty.
std::pair<std::string, std::optional<std::string>> name_and_ranks(const std::string& word) {
  if (word.front() == '[') {
    const std::size_t end = word.find(']');
    if (end != std::string::npos) {
      const std::string rest = word.substr(end + 1);
      return {word.substr(1, end - 1),
              rest.empty() ? std::nullopt : std::optional(rest.substr(rest[0] == ':' ? 1 : 0))};
    }
  }
  const std::size_t colon = word.find(':');
  if (colon == std::string::npos || word.find(':', colon + 1) != std::string::npos) {
    return {word, std::nullopt};
  }
  return {word.substr(0, colon), word.substr(colon + 1)};
}

[[noreturn]] void throw_ranks(const std::string& where, const std::string& found) {
  throw InputError(fmt::format("{}: expected HOST:RANKS with 1 to {} ranks, found \"{}\"",
                               where,
                               kMostRanksOfHost,
                               printable_start(found)));
}

// "HOST", "HOST:RANKS", or "HOST slots=RANKS", as other launchers have it. Nothing else may follow:
// what it asks for would not be done.
Host host_of_line(const std::string& line, const std::string& where) {
  constexpr std::string_view kSlots = "slots=";
  std::istringstream words(line);
  std::string word;
  words >> word;
  auto [name, ranks] = name_and_ranks(word);
  if (!is_host_name(name)) {
    throw InputError(
        fmt::format("{}: \"{}\" is not a host name or address", where, printable_start(name)));
  }
  while (words >> word) {
    if (ranks || !word.starts_with(kSlots)) {
      throw_ranks(where, line);
    }
    ranks = word.substr(kSlots.size());
  }
  const auto count = parsed_number<int>(ranks.value_or("1"), 1, kMostRanksOfHost);
  if (!count) {
    throw_ranks(where, line);
  }
  return {name, *count};
}

}  // namespace

bool is_host_name(std::string_view name) {
  constexpr std::size_t kLongest = 253;  // of a name in the DNS
  return !name.empty() && name.size() <= kLongest && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return letter < 128 &&
                  (std::isalnum(letter) != 0 || std::strchr(".-_:%", letter) != nullptr);
         });
}

std::vector<Host> read_host_file(const std::filesystem::path& path) {
  constexpr Index kMostBytes = Index{1} << 20U;
  constexpr const char* kBlanks = " \t\r";
  std::istringstream file(read_regular_file(path, "a host file", kMostBytes));
  std::vector<Host> hosts;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    line.erase(0, line.find_first_not_of(kBlanks));
    line.resize(line.find_last_not_of(kBlanks) + 1);
    if (line.empty()) {
      continue;
    }
    const std::string where = fmt::format("{}, line {}", printable(path.string()), number);
    const Host host = host_of_line(line, where);
    const auto known = std::find_if(
        hosts.begin(), hosts.end(), [&](const Host& other) { return other.name == host.name; });
    if (known != hosts.end()) {
      known->ranks += host.ranks;
      if (known->ranks > kMostRanksOfHost) {
        throw_ranks(where, fmt::format("{}:{}", host.name, known->ranks));
      }
    } else if (hosts.size() == kMostHosts) {
      throw InputError(fmt::format("{}: more than {} hosts", where, kMostHosts));
    } else {
      hosts.push_back(host);
    }
  }
  if (hosts.empty()) {
    throw InputError(fmt::format("{}: names no host", printable(path.string())));
  }
  return hosts;
}

int place_of_this_machine(const std::vector<Host>& hosts) {
  const std::string own = host_name();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].name == own || hosts[i].name == "localhost") {  // also where nothing resolves it
      return static_cast<int>(i);
    }
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::vector<std::string> addresses = addresses_of_name(hosts[i].name);
    if (std::any_of(addresses.begin(), addresses.end(), is_own_address)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace tessera::engine
