#include "engine/data/text/class_names.h"

#include <fmt/format.h>

#include "engine/data/text/read_file.h"
#include "engine/data/text/unicode_names.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

std::vector<std::string> read_class_names(const std::filesystem::path& path) {
  constexpr Index kMaxNames = 1000000;
  constexpr std::size_t kMaxNameBytes = 1000;
  const TextLines lines(path);
  if (lines.size() == 0) {
    throw InputError(path.string(), 0, "this file is empty: expected one class name per line");
  }
  if (lines.size() > kMaxNames) {
    throw InputError(
        path.string(),
        0,
        fmt::format("this file has {} lines, expected at most {} names", lines.size(), kMaxNames));
  }
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(lines.size()));
  for (Index i = 0; i < lines.size(); ++i) {
    if (lines.number(i) != i + 1) {
      throw InputError(path.string(),
                       static_cast<int>(i + 1),
                       "this line is blank, but line numbers decide which class a name belongs to: "
                       "fill it in, or remove it");
    }
    if (lines.text(i).size() > kMaxNameBytes) {
      throw InputError(
          path.string(),
          lines.number(i),
          fmt::format("this line is {} bytes long, expected a class name of at most {}",
                      lines.text(i).size(),
                      kMaxNameBytes));
    }
    names.push_back(composed(lines.text(i)));
  }
  return names;
}

}  // namespace tessera::engine
