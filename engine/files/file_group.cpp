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
    ::close(member.descriptor);
  }
}

void FileGroup::make_folder(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) {
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
  make_folder(target.parent_path());
  const int descriptor = ::open(
      partial(target).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kNewFileMode);
  if (descriptor < 0) {
    throw_file_error(target, "cannot be written", errno);
  }
  members_.push_back({target, descriptor});
  if (const int error = write_all(descriptor, bytes); error != 0) {
    throw_file_error(target, "cannot be written", error);
  }
}

void FileGroup::commit() {
  for (const Member& member : members_) {
    if (::fsync(member.descriptor) != 0) {
      throw_file_error(member.target, "cannot be written", errno);
    }
  }
  while (!members_.empty()) {
    const Member member = members_.back();
    if (::rename(partial(member.target).c_str(), member.target.c_str()) != 0) {
      throw_file_error(member.target, "cannot be replaced", errno);
    }
    members_.pop_back();
    ::close(member.descriptor);
    folders_.insert(member.target.has_parent_path() ? member.target.parent_path() : fs::path("."));
  }
  for (const fs::path& folder : folders_) {
    if (const int error = sync_folder(folder); error != 0) {
      throw_file_error(folder, "cannot be synced", error);
    }
  }
  folders_.clear();
}

}  // namespace tessera::engine
