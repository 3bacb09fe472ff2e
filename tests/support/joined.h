// Lists of sentences, as a failing check shows them.

#pragma once

#include <string>
#include <vector>

namespace tessera::tests {

[[nodiscard]] inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + '\n';
  }
  return text;
}

}  // namespace tessera::tests
