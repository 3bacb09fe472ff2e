#include "partitioner/base/spelling.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tessera {

namespace {

constexpr std::size_t kLongest = 40;  // no known word is longer

char folded(char letter) {
  if (letter >= 'A' && letter <= 'Z') {
    return static_cast<char>(letter - 'A' + 'a');
  }
  return letter == '-' || letter == ' ' ? '_' : letter;
}

bool same(char a, char b) {
  return folded(a) == folded(b);
}

// Letters to insert, delete, replace or swap with their neighbour (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, kLongest + 1>, kLongest + 1> distance{};  // of prefixes
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = distance[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.size() > kLongest) {
    return {};
  }
  const std::size_t allowed = word.size() <= 3 ? 0 : word.size() <= 6 ? 1 : 2;
  std::string_view nearest;
  std::size_t least = allowed + 1;
  for (const std::string_view each : known) {
    const std::size_t found = each.size() > kLongest ? least : distance(word, each);
    if (found < least) {
      nearest = each;
      least = found;
    }
  }
  return nearest;
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string_view nearest = nearest_word(word, known);
  return nearest.empty() ? "" : ": did you mean `" + std::string(nearest) + "`?";
}

}  // namespace tessera
