// The header alone: no other machine needs the library.
#define XXH_INLINE_ALL
#include "engine/recovery/slot_file.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

static_assert(std::endian::native == std::endian::little, "the layout of these files");

namespace {

constexpr std::uint64_t kMagic = 0x32746f6c73736574U;  // "tesslot2"
constexpr std::size_t kAlignment = 64;
constexpr std::uint64_t kMostText = 1U << 26U;  // bytes; more is no text of ours
constexpr int kPlaces = 2;

struct SlotHead {
  std::uint64_t magic = 0;
  std::uint64_t step = 0;
  std::uint64_t place_bytes = 0;  // of each of the two places
  std::uint64_t text_room = 0;    // bytes before the floats
  std::uint64_t text_bytes = 0;
  std::uint64_t floats = 0;
  std::uint64_t content_digest = 0;
  std::uint64_t head_digest = 0;  // of what is before
};
static_assert(sizeof(SlotHead) == kAlignment);

std::uint64_t digest_of(const SlotHead& head) {
  return XXH3_64bits(&head, offsetof(SlotHead, head_digest));
}

std::uint64_t with_text(std::uint64_t floats_digest, std::string_view text) {
  return XXH3_64bits_withSeed(text.data(), text.size(), floats_digest);
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

[[noreturn]] void fail_to_make(const std::filesystem::path& path, int error) {
  throw InputError(path.string(),
                   0,
                   fmt::format("no room for the state of the last step: {}",
                               std::strerror(error)));  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

SlotFile::SlotFile(const std::filesystem::path& path, Index text_bytes, Index floats)
    : text_room_(static_cast<std::size_t>(aligned(static_cast<std::uint64_t>(text_bytes)))),
      floats_(static_cast<std::size_t>(floats)) {
  const std::uint64_t all = kPlaces * aligned(sizeof(SlotHead) + text_room_ +
                                              static_cast<std::uint64_t>(floats) * sizeof(float));
  if (all > std::numeric_limits<std::size_t>::max()) {
    fail_to_make(path, ENOMEM);
  }
  bytes_ = static_cast<std::size_t>(all);
  const Descriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file.is_open()) {
    fail_to_make(path, errno);
  }
  // Room is taken now: where there is none, writing to the memory would kill the process.
  int error = ::posix_fallocate(file.number(), 0, static_cast<off_t>(bytes_));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
    error = errno;
  }
  if (memory == MAP_FAILED) {
    ::unlink(path.c_str());
    fail_to_make(path, error);
  }
  memory_ = static_cast<std::uint8_t*>(memory);
}

SlotFile::~SlotFile() {
  ::munmap(memory_, bytes_);
}

std::uint8_t* SlotFile::place() const {
  return memory_ + static_cast<std::size_t>(next_) * (bytes_ / kPlaces);
}

std::span<float> SlotFile::begin() {
  std::memset(place(), 0, sizeof(SlotHead));
  std::atomic_signal_fence(std::memory_order_seq_cst);  // a kill comes between two instructions
  return {reinterpret_cast<float*>(place() + sizeof(SlotHead) + text_room_), floats_};
}

void SlotFile::write(Index step,
                     const std::string& text,
                     const std::vector<std::span<const float>>& pieces) {
  constexpr std::size_t kInCache = 1U << 13U;  // floats that are copied, then digested
  std::span<float> left = begin();
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  for (std::span<const float> piece : pieces) {
    expects(piece.size() <= left.size(), "there is room for the floats");
    while (!piece.empty()) {
      const std::size_t count = std::min(piece.size(), kInCache);
      std::memcpy(left.data(), piece.data(), count * sizeof(float));
      XXH3_64bits_update(&digest, left.data(), count * sizeof(float));
      left = left.subspan(count);
      piece = piece.subspan(count);
    }
  }
  expects(left.empty(), "all floats are there");
  finish(step, text, XXH3_64bits_digest(&digest));
}

void SlotFile::finish(Index step, const std::string& text) {
  const std::uint8_t* const floats = place() + sizeof(SlotHead) + text_room_;
  finish(step, text, XXH3_64bits(floats, floats_ * sizeof(float)));
}

void SlotFile::finish(Index step, const std::string& text, std::uint64_t floats_digest) {
  expects(text.size() <= text_room_, "there is room for the text");
  std::memcpy(place() + sizeof(SlotHead), text.data(), text.size());
  SlotHead head{.magic = kMagic,
                .step = static_cast<std::uint64_t>(step),
                .place_bytes = bytes_ / kPlaces,
                .text_room = text_room_,
                .text_bytes = text.size(),
                .floats = floats_,
                .content_digest = with_text(floats_digest, text)};
  head.head_digest = digest_of(head);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(place(), &head, sizeof(head));
  next_ = (next_ + 1) % kPlaces;
}

SlotReader::SlotReader(const std::filesystem::path& path, Index most_bytes)
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
  struct stat found {};
  if (file_.is_open() && ::fstat(file_.number(), &found) == 0 && S_ISREG(found.st_mode) &&
      found.st_size <= most_bytes) {
    bytes_ = static_cast<std::uint64_t>(found.st_size);
  }
  for (std::uint64_t number = 0; number < kPlaces; ++number) {
    look_at(number * (bytes_ / kPlaces));
  }
}

bool SlotReader::read_bytes(std::uint64_t from, void* to, std::size_t count) const {
  for (std::size_t done = 0; done < count;) {
    const ssize_t part = ::pread(file_.number(),
                                 static_cast<std::uint8_t*>(to) + done,
                                 count - done,
                                 static_cast<off_t>(from + done));
    if (part == 0 || (part < 0 && errno != EINTR)) {
      return false;
    }
    done += part > 0 ? static_cast<std::size_t>(part) : 0;
  }
  return true;
}

void SlotReader::look_at(std::uint64_t place) {
  const std::uint64_t room = bytes_ / kPlaces;
  SlotHead head;
  if (room < sizeof(head) || !read_bytes(place, &head, sizeof(head)) || head.magic != kMagic ||
      head.head_digest != digest_of(head) || head.place_bytes != room) {
    return;
  }
  // Each is less than the room before sums are made of them.
  if (head.text_room > room || head.floats > room / sizeof(float) ||
      sizeof(head) + head.text_room + head.floats * sizeof(float) > room ||
      head.text_bytes > head.text_room || head.text_bytes > kMostText ||
      head.step > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) {
    return;
  }
  Content content{.step = static_cast<Index>(head.step),
                  .text = std::string(static_cast<std::size_t>(head.text_bytes), '\0'),
                  .floats = static_cast<Index>(head.floats),
                  .at = place + sizeof(head) + head.text_room};
  if (!read_bytes(place + sizeof(head), content.text.data(), content.text.size())) {
    return;
  }
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  std::vector<float> chunk(
      static_cast<std::size_t>(std::min<std::uint64_t>(1U << 14U, head.floats)));
  for (std::uint64_t done = 0; done < head.floats;) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), head.floats - done));
    if (!read_bytes(content.at + done * sizeof(float), chunk.data(), count * sizeof(float))) {
      return;
    }
    XXH3_64bits_update(&digest, chunk.data(), count * sizeof(float));
    done += count;
  }
  if (with_text(XXH3_64bits_digest(&digest), content.text) == head.content_digest) {
    contents_.push_back(std::move(content));
  }
}

void SlotReader::read(const Content& content, Index begin, std::span<float> to) const {
  expects(begin >= 0 && std::ssize(to) <= content.floats - begin, "the content has these floats");
  if (!read_bytes(content.at + static_cast<std::uint64_t>(begin) * sizeof(float),
                  to.data(),
                  to.size_bytes())) {
    throw InputError("the kept state of a step has been cut while it was read");
  }
}

}  // namespace tessera::engine
