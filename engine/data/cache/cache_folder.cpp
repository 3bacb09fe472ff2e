#include "engine/data/cache/cache_folder.h"

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "engine/base/digest.h"
#include "engine/processes/descriptor.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPartial = "partial";
constexpr const char* kEnding = ".picture";
constexpr std::size_t kFolderDigits = 2;
constexpr std::time_t kUsualWriting_s = 60;  // more than writing a picture takes

// A file that is mapped to be read, whole.
class MappedEntry {
 public:
  MappedEntry(int descriptor, std::size_t bytes)
      : start_(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0)), bytes_(bytes) {}
  ~MappedEntry() {
    if (start_ != MAP_FAILED) {
      ::munmap(start_, bytes_);
    }
  }
  MappedEntry(const MappedEntry&) = delete;
  MappedEntry& operator=(const MappedEntry&) = delete;

  [[nodiscard]] std::span<const std::uint8_t> bytes() const {
    return start_ == MAP_FAILED ? std::span<const std::uint8_t>()
                                : std::span(static_cast<const std::uint8_t*>(start_), bytes_);
  }

 private:
  void* start_;
  std::size_t bytes_;
};

std::uint64_t stamp_of(const struct stat& status) {
  Digest stamp;
  for (const auto value : {static_cast<std::uint64_t>(status.st_dev),
                           static_cast<std::uint64_t>(status.st_ino),
                           static_cast<std::uint64_t>(status.st_size),
                           static_cast<std::uint64_t>(status.st_mtim.tv_sec),
                           static_cast<std::uint64_t>(status.st_mtim.tv_nsec),
                           static_cast<std::uint64_t>(status.st_ctim.tv_sec),
                           static_cast<std::uint64_t>(status.st_ctim.tv_nsec)}) {
    stamp.add(value);
  }
  return stamp.value() == 0 ? 1 : stamp.value();
}

void write_all(int descriptor, std::span<const std::uint8_t> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      throw InputError(path.string(), 0, std::generic_category().message(count == 0 ? EIO : errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

// In a folder that somebody names. Links there may lead to files of others.
void make_subfolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw InputError(path.string(), 0, error.message());
  }
  if (fs::is_symlink(path, error)) {
    throw InputError(path.string(), 0, "this is a link: expected a folder");
  }
}

// A new file, locked as long as it is written.
class PartialFile {
 public:
  explicit PartialFile(fs::path path)
      : path_(std::move(path)),
        file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666)) {
    if (!file_.is_open()) {
      throw InputError(path_.string(), 0, std::generic_category().message(errno));
    }
    (void)::flock(file_.number(), LOCK_EX | LOCK_NB);
  }
  ~PartialFile() {
    if (!path_.empty()) {
      ::unlink(path_.c_str());
    }
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(std::span<const std::uint8_t> bytes) const { write_all(file_.number(), bytes, path_); }

  void rename_to(const fs::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) {
      throw InputError(target.string(), 0, std::generic_category().message(errno));
    }
    path_.clear();
  }

 private:
  fs::path path_;
  Descriptor file_;
};

}  // namespace

CacheFolder::CacheFolder(fs::path path) : path_(std::move(path)) {}

void CacheFolder::prepare() const {
  const fs::path partial = path_ / kPartial;
  make_subfolder(partial);
  if (::access(partial.c_str(), W_OK | X_OK) != 0) {
    throw InputError(partial.string(), 0, std::generic_category().message(errno));
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(partial, error)) {
    const Descriptor file(
        ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status = {};
    const bool old = file.is_open() && ::fstat(file.number(), &status) == 0 &&
                     std::time(nullptr) - status.st_mtime > kUsualWriting_s;
    if (old && ::flock(file.number(), LOCK_EX | LOCK_NB) == 0) {
      ::unlink(entry.path().c_str());
    }
  }
}

fs::path CacheFolder::file_of(const Name& name) const {
  const std::string content = fmt::format("{:016x}{:016x}", name.content.high, name.content.low);
  return path_ / content.substr(0, kFolderDigits) /
         fmt::format("{}-{}{}", content, name.reduction, kEnding);
}

std::optional<CacheFolder::Found> CacheFolder::find(const Name& name,
                                                    Index channels,
                                                    std::uint64_t known_stamp) const {
  const Descriptor file(
      ::open(file_of(name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  struct stat status = {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size < kEntryHeadBytes) {
    return std::nullopt;
  }
  const std::uint64_t stamp = stamp_of(status);
  auto mapped =
      std::make_shared<const MappedEntry>(file.number(), static_cast<std::size_t>(status.st_size));
  auto picture = picture_of_entry(mapped->bytes(), name.content, channels, stamp != known_stamp);
  if (!picture || picture->reduction != Index{name.reduction}) {
    return std::nullopt;
  }
  picture->lender = std::move(mapped);
  return Found{std::move(*picture), stamp, static_cast<Index>(status.st_size)};
}

void CacheFolder::store(const Name& name, const Picture& picture) {
  const fs::path target = file_of(name);
  make_subfolder(target.parent_path());
  make_subfolder(path_ / kPartial);
  PartialFile file(path_ / kPartial /
                   fmt::format("{:016x}{:016x}-{}-{}-{}",
                               name.content.high,
                               name.content.low,
                               name.reduction,
                               ::getpid(),
                               written_++));
  file.write(entry_head(picture, name.content));
  file.write(picture.pixels());
  file.rename_to(target);
}

void CacheFolder::remove() const noexcept {
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(path_, error)) {
    const std::string name = folder.path().filename().string();
    const bool of_contents = name.size() == kFolderDigits &&
                             name.find_first_not_of("0123456789abcdef") == std::string::npos;
    if ((!of_contents && name != kPartial) || folder.is_symlink(error)) {
      continue;
    }
    for (const auto& file : fs::directory_iterator(folder.path(), error)) {
      if (!of_contents || file.path().extension() == kEnding) {
        ::unlink(file.path().c_str());
      }
    }
    ::rmdir(folder.path().c_str());
  }
  ::rmdir(path_.c_str());
}

}  // namespace tessera::engine
