#include "engine/supervisor/folder_mirror.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "engine/files/own_file.h"
#include "engine/supervisor/message_stream.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kPartBytes = std::size_t{128} << 10U;
constexpr const char* kUnfinished = ".copying";

std::string encoded(const std::vector<unsigned char>& bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(
      text.data(), text.size(), bytes.data(), bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();
  return text;
}

std::vector<unsigned char> decoded(const std::string& text) {
  std::vector<unsigned char> bytes(text.size() / 4 * 3 + 3);
  std::size_t length = 0;
  if (sodium_base642bin(bytes.data(),
                        bytes.size(),
                        text.data(),
                        text.size(),
                        nullptr,
                        &length,
                        nullptr,
                        sodium_base64_VARIANT_ORIGINAL) != 0) {
    throw InputError("a part of a file has come damaged");
  }
  bytes.resize(length);
  return bytes;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<unsigned char> part_of(int descriptor, std::int64_t offset) {
  std::vector<unsigned char> bytes(kPartBytes);
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

std::optional<nlohmann::json> MirrorSource::next() {
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

std::optional<nlohmann::json> MirrorSource::next_of(const std::filesystem::path& path,
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
  const bool goes_on = same_file && (grows || (!copied.whole && copied.changed_ns == changed_ns));
  if (!goes_on) {
    copied = {now.st_ino, changed_ns, 0, false};
  }
  copied.changed_ns = changed_ns;
  const std::vector<unsigned char> bytes = part_of(file.number(), copied.bytes);
  const std::int64_t offset = copied.bytes;
  copied.bytes += std::ssize(bytes);
  copied.whole = copied.bytes >= now.st_size || bytes.empty();
  return nlohmann::json{{"do", "mirror"},
                        {"file", path.filename().string()},
                        {"offset", offset},
                        {"appends", grows && goes_on},
                        {"last", copied.whole},
                        {"bytes", encoded(bytes)}};
}

void MirrorCopy::take(const nlohmann::json& part) {
  const std::string name = text_in(part, "file");
  if (!is_mirrored_name(name)) {
    throw InputError(fmt::format("\"{}\" is no file of a run folder", printable(name)));
  }
  const bool appends = part.value("appends", false);
  const std::filesystem::path target = folder_ / name;
  const std::filesystem::path file = appends ? target : folder_ / (name + kUnfinished);
  const Index offset = number_in(part, "offset");
  const std::vector<unsigned char> bytes = decoded(text_in(part, "bytes"));
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (offset == 0 && !appends) {
    ::unlink(file.c_str());  // of a copy that was cut off, or what somebody else has put there
  }
  const Descriptor copy(open_without_links(file, O_WRONLY));
  if (!copy.is_open() ||
      ::pwrite(copy.number(), bytes.data(), bytes.size(), offset) != std::ssize(bytes)) {
    throw InputError(fmt::format("{}: cannot be written: {}",
                                 printable(file.string()),
                                 std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  }
  if (part.value("last", false) && !appends) {
    std::filesystem::rename(file, target, error);
  }
}

}  // namespace tessera::engine
