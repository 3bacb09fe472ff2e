// A small file that one start of a program leaves for the next, and that may be missing, cut, of
// another version or made by anybody: it is believed where its length and digest fit, and else is
// as if it were not there. It appears whole or not at all.
//
// Little endian: a head of 32 bytes (magic, kind, length of the content, XXH3 of kind and content),
// and the content. A digest guards against mistakes, not against forgery: whoever reads a content
// checks its numbers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

// `kind` says what the content is, and of which version. Throws InputError, also where another
// process is writing the same file.
void write_digested(const std::filesystem::path& path,
                    std::uint64_t kind,
                    std::span<const std::byte> content);

// The content; nothing where there is no such file of this kind, of at most `most_bytes`. Links are
// not followed.
[[nodiscard]] std::optional<std::vector<std::byte>> read_digested(const std::filesystem::path& path,
                                                                  std::uint64_t kind,
                                                                  Index most_bytes = Index{1}
                                                                                     << 30);

}  // namespace tessera::engine
