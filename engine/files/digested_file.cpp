// The header alone: no other machine needs the library.
#define XXH_INLINE_ALL
#include "engine/files/digested_file.h"

#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/files/atomic_file.h"
#include "engine/processes/descriptor.h"

namespace tessera::engine {

static_assert(std::endian::native == std::endian::little, "the layout of these files");

namespace {

constexpr std::uint64_t kDigestedMagic = 0x3174676964736574U;  // "tesdigt1"

struct DigestedHead {
  std::uint64_t magic = kDigestedMagic;
  std::uint64_t kind = 0;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;
};
static_assert(sizeof(DigestedHead) == 32);

std::uint64_t content_digest_of(std::uint64_t kind, std::span<const std::byte> content) {
  return XXH3_64bits_withSeed(content.data(), content.size(), kind);
}

bool read_fully(int descriptor, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t part = ::read(descriptor, to.data(), to.size());
    if (part == 0 || (part < 0 && errno != EINTR)) {
      return false;
    }
    to = to.subspan(part > 0 ? static_cast<std::size_t>(part) : 0);
  }
  return true;
}

std::optional<std::vector<std::byte>> content_of(int descriptor,
                                                 std::uint64_t kind,
                                                 Index most_bytes) {
  struct stat status = {};
  DigestedHead head;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
      !read_fully(descriptor, std::as_writable_bytes(std::span(&head, 1))) ||
      head.magic != kDigestedMagic || head.kind != kind ||
      head.bytes > static_cast<std::uint64_t>(most_bytes) ||
      static_cast<std::uint64_t>(status.st_size) != sizeof(head) + head.bytes) {
    return std::nullopt;
  }
  std::vector<std::byte> content(static_cast<std::size_t>(head.bytes));
  if (!read_fully(descriptor, content) || content_digest_of(kind, content) != head.digest) {
    return std::nullopt;
  }
  return content;
}

}  // namespace

void write_digested(const std::filesystem::path& path,
                    std::uint64_t kind,
                    std::span<const std::byte> content) {
  const DigestedHead head{
      .kind = kind, .bytes = content.size(), .digest = content_digest_of(kind, content)};
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&head, 1)));
  file.write(content);
  file.commit();
}

std::optional<std::vector<std::byte>> read_digested(const std::filesystem::path& path,
                                                    std::uint64_t kind,
                                                    Index most_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return content_of(file.number(), kind, most_bytes);
}

}  // namespace tessera::engine
