// Files that name classes, a name a line: the names of --names, labels.txt and classes.txt beside
// IDX files, batches.meta.txt of CIFAR, labels and names of a Darknet .data file.
//
// A name's place in the file is its class, so a blank line before the last name is an error: left
// out, it would move all names after it.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::engine {

// All names of the file, at least one; UTF-8 or UTF-16, with or without a byte-order mark, lines
// that end in any system's way, spaces at both ends left out, letters composed (unicode_names.h).
// Throws InputError with path and line where the file is not such a list; no message repeats what a
// line holds.
[[nodiscard]] std::vector<std::string> read_class_names(const std::filesystem::path& path);

}  // namespace tessera::engine
