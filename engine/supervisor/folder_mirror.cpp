#include "engine/supervisor/folder_mirror.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/files/own_file.h"
#include "engine/processes/descriptor.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kPartBytes = std::size_t{128} << 10U;
constexpr std::ptrdiff_t kEndBytes = 4096;  // some lines of metrics, with their times
constexpr const char* kUnfinished = ".copying";

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<unsigned char> part_of(int descriptor, std::int64_t offset, std::size_t longest) {
  std::vector<unsigned char> bytes(longest);
  const ssize_t count = ::pread(descriptor, bytes.data(), bytes.size(), offset);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

}  // namespace

bool is_mirrored_name(const std::string& name) {
  constexpr std::size_t kLongest = 200;
  const bool plain =
      !name.empty() && name.size() <= kLongest && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), [](unsigned char letter) {
        return letter < 128 && (std::isalnum(letter) != 0 || std::strchr(".-_", letter) != nullptr);
      });
  return plain && name != "run.lock" && !ends_with(name, ".partial") &&
         !ends_with(name, kUnfinished);
}

std::optional<to_agent::FilePart> MirrorSource::next() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (is_mirrored_name(name)) {
      if (auto part = next_of(entry.path(), copied_[name])) {
        return part;
      }
    }
  }
  return std::nullopt;
}

std::optional<to_agent::FilePart> MirrorSource::next_of(const std::filesystem::path& path,
                                                        Copied& copied) const {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat now {};
  if (!file.is_open() || ::fstat(file.number(), &now) != 0 || !S_ISREG(now.st_mode)) {
    return std::nullopt;
  }
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const std::int64_t changed_ns = now.st_mtim.tv_sec * kNanoseconds + now.st_mtim.tv_nsec;
  const bool same_file = copied.inode == now.st_ino && now.st_size >= copied.bytes;
  const bool grows = ends_with(path.filename().string(), ".jsonl");
  if (copied.whole && same_file && copied.changed_ns == changed_ns && copied.bytes == now.st_size) {
    return std::nullopt;
  }
  const bool goes_on = same_file && (grows ? part_of(file.number(),
                                                     copied.bytes - std::ssize(copied.end),
                                                     copied.end.size()) == copied.end
                                           : !copied.whole && copied.changed_ns == changed_ns);
  if (!goes_on) {
    copied = {now.st_ino, changed_ns};
  }
  copied.changed_ns = changed_ns;
  std::vector<unsigned char> bytes = part_of(file.number(), copied.bytes, kPartBytes);
  const std::int64_t offset = copied.bytes;
  copied.bytes += std::ssize(bytes);
  copied.whole = copied.bytes >= now.st_size || bytes.empty();
  const bool appends = grows && copied.in_place;
  copied.in_place = copied.in_place || copied.whole;
  if (!bytes.empty()) {
    copied.end.assign(bytes.end() - std::min(std::ssize(bytes), kEndBytes), bytes.end());
  }
  return to_agent::FilePart{
      path.filename().string(), offset, appends, copied.whole, std::move(bytes)};
}

void MirrorCopy::take(const to_agent::FilePart& part) {
  if (!is_mirrored_name(part.file)) {
    throw InputError(fmt::format("\"{}\" is no file of a run folder", printable(part.file)));
  }
  const std::filesystem::path target = folder_ / part.file;
  const std::filesystem::path file = part.appends ? target : folder_ / (part.file + kUnfinished);
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (part.offset == 0 && !part.appends) {
    ::unlink(file.c_str());  // of a copy that was cut off, or what somebody else has put there
  }
  const Descriptor copy = open_without_links(file, O_WRONLY);
  if (!copy.is_open() ||
      ::pwrite(copy.number(), part.bytes.data(), part.bytes.size(), part.offset) !=
          std::ssize(part.bytes)) {
    throw InputError(fmt::format("{}: cannot be written: {}",
                                 printable(file.string()),
                                 std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  }
  if (part.last && !part.appends) {
    std::filesystem::rename(file, target, error);
  }
}

}  // namespace tessera::engine
