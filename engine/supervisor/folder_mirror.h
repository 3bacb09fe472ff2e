// A second copy of a run folder on another device, so that a run can go on there when the first one
// is gone. Files that grow are sent as they grow, others whole whenever they have changed; a file
// of the copy is replaced once it is there whole.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/supervisor/protocol.h"

namespace tessera::engine {

// Names that a copy may have: of files alone, not of what leads out of the folder.
[[nodiscard]] bool is_mirrored_name(const std::string& name);

// Reads the folder and says what to send.
class MirrorSource {
 public:
  explicit MirrorSource(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The next part of what the copy lacks; nothing where it is complete as far as is known now.
  [[nodiscard]] std::optional<to_agent::FilePart> next();

  // The copy is another one, of which nothing is known.
  void start_anew() { copied_.clear(); }

 private:
  struct Copied {
    std::uint64_t inode = 0;
    std::int64_t changed_ns = 0;
    std::int64_t bytes = 0;               // that were sent
    bool whole = false;                   // and all that there were when it was looked at
    bool in_place = false;                // all that there were once: the copy has this file
    std::vector<unsigned char> end = {};  // what was sent last: it tells a file that was cut and
                                          // has grown again
  };
  [[nodiscard]] std::optional<to_agent::FilePart> next_of(const std::filesystem::path& path,
                                                          Copied& copied) const;

  std::filesystem::path folder_;
  std::map<std::string, Copied> copied_;
};

// Writes what was sent. Throws InputError where it cannot.
class MirrorCopy {
 public:
  explicit MirrorCopy(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void take(const to_agent::FilePart& part);

 private:
  std::filesystem::path folder_;
};

}  // namespace tessera::engine
