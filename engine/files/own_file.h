// A file beside others that is this process's own: opened to be written from its start, and locked.
// What stands there already may have been put there by somebody else, to have another file
// overwritten: neither a symbolic nor a hard link is written through.

#pragma once

#include <filesystem>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

struct OwnFile {
  Descriptor descriptor = Descriptor();  // what is in the file is still there
  int error = 0;                         // of the system, where there is no descriptor
  bool locked_by_another = false;        // then it is open, but not to be written
};

// Makes the file where it is missing. A link, of which no process holds the lock, is removed and a
// new file made in its place. Where the file system has no locks, there is none.
[[nodiscard]] OwnFile open_own_file(const std::filesystem::path& path);

// A file beside others to which a line or a part is added, made where it is missing; none where it
// cannot be opened, is a link, has other names or is no regular file. `flags` are added to those of
// open(): how it is written, as O_WRONLY | O_APPEND.
[[nodiscard]] Descriptor open_without_links(const std::filesystem::path& path, int flags);

// Whether a path names the file that is open: it may have been renamed or removed meanwhile.
[[nodiscard]] bool names_open_file(const std::filesystem::path& path, int descriptor);

}  // namespace tessera::engine
