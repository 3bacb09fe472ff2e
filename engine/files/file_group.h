// Many small files that appear whole or not at all, each by itself, and are synced together: to
// sync one after the other takes a disk many times as long. What is written goes to NAME.partial
// beside each target; commit() syncs all, renames them and syncs their folders.
//
// One writer per target. What was killed leaves some of the files, each as it should be, and
// perhaps NAME.partial of others, which the next writer replaces.

#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

class FileGroup {
 public:
  // `root` and folders below it must not be symbolic links: they lie where somebody else may have
  // put them. Without one, any folder may be.
  explicit FileGroup(std::filesystem::path root = {}) : root_(std::move(root)) {}
  ~FileGroup();  // removes what was not committed
  FileGroup(const FileGroup&) = delete;
  FileGroup& operator=(const FileGroup&) = delete;

  // A whole file; makes the folders that it is to lie in. Throws InputError, as does commit():
  // path, what happened, what to do.
  void add(const std::filesystem::path& target, std::span<const std::byte> bytes);

  // All files that were added since the last time.
  void commit();

 private:
  struct Member {
    std::filesystem::path target;
    Descriptor file;  // NAME.partial
  };

  void expect_no_links(const std::filesystem::path& folder);
  void make_folder(const std::filesystem::path& folder);

  std::filesystem::path root_;
  std::set<std::filesystem::path> checked_;  // below it
  std::vector<Member> members_;
  std::set<std::filesystem::path> folders_;  // to be synced
};

}  // namespace tessera::engine
