// JSON that others may have written: read with limits of bytes, of depth and of the length of a
// line, so that no file takes more memory or time than the largest of our own would.

#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "partitioner/base/region.h"

namespace tessera::engine {

inline constexpr Index kMostJsonBytes = Index{64} << 20U;
inline constexpr std::size_t kMostJsonLine = std::size_t{1} << 20U;

// Whether arrays and objects lie in each other no deeper than ours do. It need not be JSON.
[[nodiscard]] bool is_shallow_json(std::string_view text);

// The text of a file that may hold JSON; nothing where it cannot be read, is longer than
// `most_bytes`, or is too deep.
[[nodiscard]] std::optional<std::string> read_json_text(const std::filesystem::path& path,
                                                        Index most_bytes = kMostJsonBytes);

// Calls `take` for each line of a regular file, without its end, but for lines that are longer than
// `most_bytes`, and returns how many these were; none where it cannot be read. A last line without
// an end counts. No more than a line is held at a time.
Index for_each_line(const std::filesystem::path& path,
                    std::size_t most_bytes,
                    const std::function<void(const std::string& line)>& take);

// The same for lines that may be JSON: neither longer than kMostJsonLine nor too deep.
Index for_each_json_line(const std::filesystem::path& path,
                         const std::function<void(const std::string& line)>& take);

}  // namespace tessera::engine
