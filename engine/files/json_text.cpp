#include "engine/files/json_text.h"

#include <array>
#include <fstream>

#include "partitioner/base/errors.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

bool is_shallow_json(std::string_view text) {
  constexpr int kMostDepth = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (in_string) {
      i += letter == '\\' ? 1 : 0;
      in_string = letter != '"';
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '[' || letter == '{') {
      if (++depth > kMostDepth) {
        return false;
      }
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
  return true;
}

std::optional<std::string> read_json_text(const std::filesystem::path& path, Index most_bytes) {
  try {
    std::string text = read_regular_file(path, "a file of a run", most_bytes);
    return is_shallow_json(text) ? std::optional(std::move(text)) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Index for_each_line(const std::filesystem::path& path,
                    std::size_t most_bytes,
                    const std::function<void(const std::string& line)>& take) {
  Index left_out = 0;
  if (!irregular_kind(path).empty()) {
    return left_out;  // a pipe would wait to be written to
  }
  std::ifstream file(path, std::ios::binary);
  std::array<char, 65536> chunk{};
  std::string line;
  bool too_long = false;
  const auto end_line = [&] {
    if (too_long) {
      ++left_out;
    } else {
      take(line);
    }
    line.clear();
    too_long = false;
  };
  while (file.read(chunk.data(), chunk.size()), file.gcount() > 0) {
    std::string_view rest(chunk.data(), static_cast<std::size_t>(file.gcount()));
    for (std::size_t end = rest.find('\n'); !rest.empty(); end = rest.find('\n')) {
      const std::string_view part = rest.substr(0, end);
      too_long = too_long || line.size() + part.size() > most_bytes;
      if (!too_long) {
        line += part;
      }
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (end != std::string_view::npos) {
        end_line();
      }
    }
  }
  if (!line.empty() || too_long) {
    end_line();
  }
  return left_out;
}

Index for_each_json_line(const std::filesystem::path& path,
                         const std::function<void(const std::string& line)>& take) {
  Index too_deep = 0;
  const Index too_long = for_each_line(path, kMostJsonLine, [&](const std::string& line) {
    if (is_shallow_json(line)) {
      take(line);
    } else {
      ++too_deep;
    }
  });
  return too_long + too_deep;
}

}  // namespace tessera::engine
