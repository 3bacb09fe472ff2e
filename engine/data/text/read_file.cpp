#include "engine/data/text/read_file.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <span>
#include <system_error>
#include <unistd.h>

#include "engine/data/text/text_encoding.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

// Fills `bytes` from where the file stands; returns how many there were.
std::size_t read_all(const RegularFile& file,
                     std::span<std::uint8_t> bytes,
                     const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.descriptor(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) {
      throw InputError(
          path.string(),
          0,
          fmt::format("cannot read this file: {}", std::generic_category().message(errno)));
    }
    if (count == 0) {
      break;
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  return done;
}

}  // namespace

std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path,
                                     Index limit,
                                     std::string_view what) {
  const RegularFile file(path, what);
  if (file.bytes() > limit) {
    throw InputError(
        path.string(),
        0,
        fmt::format("this file has {} bytes, expected at most {}", file.bytes(), limit));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.bytes()));
  bytes.resize(read_all(file, bytes, path));
  return bytes;
}

TextLines::TextLines(const std::filesystem::path& path, std::string_view what) {
  constexpr Index kMaxTextBytes = Index{1} << 28;
  constexpr std::size_t kMaxLines = std::size_t{1} << 24;
  bytes_ = read_bytes(path, kMaxTextBytes, what);
  if (const auto problem = convert_to_utf8(bytes_)) {
    throw InputError(path.string(), 0, *problem);
  }
  const std::string_view all(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  std::size_t begin = 0;
  for (int number = 1; begin < all.size(); ++number) {
    const std::size_t end = std::min(all.find_first_of("\r\n", begin), all.size());
    add_line(begin, end, number, path);
    if (lines_.size() > kMaxLines) {
      throw InputError(path.string(), number, fmt::format("expected at most {} lines", kMaxLines));
    }
    const bool two = end + 1 < all.size() && all[end] == '\r' && all[end + 1] == '\n';
    begin = end + (two ? 2 : 1);
  }
}

void TextLines::add_line(std::size_t begin,
                         std::size_t end,
                         int number,
                         const std::filesystem::path& path) {
  constexpr const char* kSpaces = " \t\v\f";
  const std::string_view line(reinterpret_cast<const char*>(bytes_.data()) + begin, end - begin);
  if (line.find('\0') != std::string_view::npos) {
    throw InputError(path.string(), number, "this line contains a zero byte: expected text");
  }
  const std::size_t first = line.find_first_not_of(kSpaces);
  if (first != std::string_view::npos) {
    const std::size_t last = line.find_last_not_of(kSpaces);
    lines_.push_back({static_cast<std::uint32_t>(begin + first),
                      static_cast<std::uint32_t>(last - first + 1),
                      number});
  }
}

std::string_view TextLines::text(Index line) const {
  const Line& at = lines_[static_cast<std::size_t>(line)];
  return {reinterpret_cast<const char*>(bytes_.data()) + at.begin, at.size};
}

int TextLines::number(Index line) const {
  return lines_[static_cast<std::size_t>(line)].number;
}

}  // namespace tessera::engine
