#include "engine/data/read_file.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <fstream>
#include <system_error>

#include "partitioner/errors.h"

namespace engine {

using partitioner::Index;
using partitioner::InputError;

std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path, Index limit) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InputError(path.string(), 0, "this is a folder; a file was expected");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw InputError(
        path.string(),
        0,
        fmt::format("cannot open this file: {}", std::generic_category().message(errno)));
  }
  in.seekg(0, std::ios::end);
  const Index size = static_cast<Index>(in.tellg());
  if (!in || size < 0) {
    throw InputError(
        path.string(), 0, "cannot find the size of this file: a plain file was expected");
  }
  if (size > limit) {
    throw InputError(path.string(),
                     0,
                     fmt::format("this file has {} bytes; at most {} were expected", size, limit));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!in || in.gcount() != static_cast<std::streamsize>(size)) {
    throw InputError(path.string(), 0, fmt::format("cannot read all {} bytes of this file", size));
  }
  return bytes;
}

TextLines::TextLines(const std::filesystem::path& path) {
  constexpr Index kMaxTextBytes = Index{1} << 30;
  bytes_ = read_bytes(path, kMaxTextBytes);
  const std::string_view all(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  std::size_t begin = 0;
  for (int number = 1; begin < all.size(); ++number) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    const std::string_view line = all.substr(begin, end - begin);
    const std::size_t first = line.find_first_not_of(" \t\r\v\f");
    if (first != std::string_view::npos) {
      const std::size_t last = line.find_last_not_of(" \t\r\v\f");
      lines_.push_back({static_cast<std::uint32_t>(begin + first),
                        static_cast<std::uint32_t>(last - first + 1),
                        number});
    }
    begin = end + 1;
  }
}

std::string_view TextLines::text(Index line) const {
  const Line& at = lines_[static_cast<std::size_t>(line)];
  return {reinterpret_cast<const char*>(bytes_.data()) + at.begin, at.size};
}

int TextLines::number(Index line) const {
  return lines_[static_cast<std::size_t>(line)].number;
}

}  // namespace engine
