// The words of a command that a person has typed, changed to be shown as another one to type.

#pragma once

#include <set>
#include <string>
#include <vector>

namespace tessera::engine {

// Options that are left out: together with a value, given as the next word or after "=", or alone.
struct LeftOut {
  std::set<std::string, std::less<>> with_value;
  std::set<std::string, std::less<>> flags;
};

[[nodiscard]] std::vector<std::string> without(const std::vector<std::string>& words,
                                               const LeftOut& left_out);

// The value of an option; empty where it is not given.
[[nodiscard]] std::string value_of(const std::vector<std::string>& words, const std::string& name);

}  // namespace tessera::engine
