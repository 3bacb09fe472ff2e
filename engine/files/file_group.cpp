// 64-bit file offsets on 32-bit machines; before any header of the system.
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64  // NOLINT(bugprone-reserved-identifier)
#endif

#include "engine/files/file_group.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/types.h>
#include <system_error>
#include <unistd.h>

#include "engine/files/file_error.h"
#include "engine/files/sync_folder.h"

namespace tessera::engine {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargestWrite = std::size_t{1} << 28U;  // bytes for one call of the system
constexpr std::size_t kMostOpen = 128;                        // files
constexpr mode_t kMode = 0666;                                // less the user's umask

fs::path partial(const fs::path& target) {
  fs::path path = target;
  path += ".partial";
  return path;
}

void write_all(int descriptor, std::span<const std::byte> bytes, const fs::path& target) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (count < 0 && errno != EINTR) {
      throw_file_error(target, "cannot be written", errno);
    }
    bytes = bytes.subspan(count > 0 ? static_cast<std::size_t>(count) : 0);
  }
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
  const int descriptor =
      ::open(partial(target).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kMode);
  if (descriptor < 0) {
    throw_file_error(target, "cannot be written", errno);
  }
  members_.push_back({target, descriptor});
  write_all(descriptor, bytes, target);
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
