#include "engine/files/file_group.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/types.h>
#include <system_error>
#include <unistd.h>

#include "engine/files/file_error.h"
#include "engine/files/sync_folder.h"
#include "engine/files/written_bytes.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"

namespace tessera::engine {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostOpen = 128;  // files

fs::path partial(const fs::path& target) {
  fs::path path = target;
  path += ".partial";
  return path;
}

}  // namespace

FileGroup::~FileGroup() {
  for (const Member& member : members_) {
    ::unlink(partial(member.target).c_str());
  }
}

// The folders of `root_` down to this one.
void FileGroup::expect_no_links(const fs::path& folder) {
  if (root_.empty() || !checked_.insert(folder).second) {
    return;
  }
  const fs::path below = folder.lexically_relative(root_);
  fs::path path = root_;
  for (auto part = below.begin();; ++part) {
    std::error_code error;
    if (fs::is_symlink(path, error)) {
      throw InputError(path.string(),
                       0,
                       "is a symbolic link, through which nothing is written: replace it with a "
                       "folder");
    }
    if (part == below.end() || *part == ".." || part->empty()) {
      return;
    }
    path /= *part;
  }
}

void FileGroup::make_folder(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || is_folder(folder)) {
    return;
  }
  make_folder(folder.parent_path());
  fs::create_directory(folder, error);
  if (error) {
    throw_file_error(folder, "cannot be created", error.value());
  }
  folders_.insert(folder.has_parent_path() ? folder.parent_path() : fs::path("."));
}

void FileGroup::add(const fs::path& target, std::span<const std::byte> bytes) {
  if (members_.size() == kMostOpen) {
    commit();
  }
  expect_no_links(target.parent_path());
  make_folder(target.parent_path());
  ::unlink(partial(target).c_str());  // it may be a link to another file
  Descriptor file(::open(
      partial(target).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kNewFileMode));
  if (!file.is_open()) {
    throw_file_error(target, "cannot be written", errno);
  }
  members_.push_back({target, std::move(file)});
  if (const int error = write_all(members_.back().file.number(), bytes); error != 0) {
    throw_file_error(target, "cannot be written", error);
  }
}

void FileGroup::commit() {
  for (const Member& member : members_) {
    if (::fsync(member.file.number()) != 0) {
      throw_file_error(member.target, "cannot be written", errno);
    }
  }
  while (!members_.empty()) {
    const Member& member = members_.back();
    if (::rename(partial(member.target).c_str(), member.target.c_str()) != 0) {
      throw_file_error(member.target, "cannot be replaced", errno);
    }
    folders_.insert(member.target.has_parent_path() ? member.target.parent_path() : fs::path("."));
    members_.pop_back();
  }
  for (const fs::path& folder : folders_) {
    if (const int error = sync_folder(folder); error != 0) {
      throw_file_error(folder, "cannot be synced", error);
    }
  }
  folders_.clear();
}

}  // namespace tessera::engine
