// A file that appears whole or not at all. What is written goes to NAME.partial beside the target;
// commit() syncs it, renames it to the target and syncs the folder. Until then, and after any
// error, the old file is as it was.
//
// A generation can be kept: the file that is replaced then gets a second name before the new one
// takes its place, so that at every moment one of the two names has a whole file that is on the
// disk.
//
// One writer per target: a second one, in any process on this machine, gets an InputError. A run
// that was killed can leave NAME.partial behind; the next one overwrites it, or finishes it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

// What becomes of a target that is a symbolic link. In a folder that somebody else may have made,
// such as that of a run, a link leads where that person wants something overwritten: there it is
// the link that is replaced. It is followed where the user has named that very file, to keep a link
// that is theirs. (A hard link is replaced either way, since the new file is renamed to the
// target.)
enum class Links { Replace, Follow };

class AtomicFile {
 public:
  // The folder must exist. Throws InputError, as do all members: path, what happened, what to do.
  explicit AtomicFile(const std::filesystem::path& target, Links links = Links::Replace);
  ~AtomicFile();  // removes what was not committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // commit() leaves the file that it replaces under this name, in the same folder; what had the
  // name is replaced. Only a regular file is kept. On a disk that is full while the new file is
  // written, the older generation is removed to make room, if the target is there.
  void keep_old_as(std::filesystem::path previous) { previous_ = std::move(previous); }

  // Appends. After an error the temporary file is gone and nothing more may be written.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  // Replaces bytes that were written before, from `offset` on.
  void overwrite(std::int64_t offset, std::span<const std::byte> bytes);

  void commit();

  // Commits what a process that was killed has left of that target, where `is_whole` says so of the
  // path at which it lies; else removes it.
  static void finish_left(const std::filesystem::path& target,
                          const std::filesystem::path& previous,
                          const std::function<bool(const std::filesystem::path&)>& is_whole);

 private:
  struct Left {};  // the temporary file keeps what is in it
  AtomicFile(const std::filesystem::path& target, Links links, Left left);
  void open_temporary();
  void discard() noexcept;
  [[nodiscard]] int write_at(std::int64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] bool has_old() const;
  [[nodiscard]] bool made_room() const;
  [[nodiscard]] int keep_old() const;
  [[noreturn]] void fail(std::string_view action, int error_number);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::filesystem::path previous_;  // empty: the old file is not kept
  std::int64_t end_ = 0;            // bytes appended so far
  Descriptor file_;                 // the temporary one, locked; closed once committed or discarded
};

// A whole text file at once.
void write_atomically(const std::filesystem::path& target,
                      std::string_view text,
                      Links links = Links::Replace);

}  // namespace tessera::engine
