#include "engine/recovery/slot_file.h"

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/digest.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

static_assert(std::endian::native == std::endian::little, "the layout of these files");

namespace {

constexpr std::uint64_t kMagic = 0x31746f6c73736574U;  // "tesslot1"
constexpr std::size_t kAlignment = 64;
constexpr int kPlaces = 2;

struct SlotHead {
  std::uint64_t magic = 0;
  std::uint64_t step = 0;
  std::uint64_t place_bytes = 0;  // of each of the two places
  std::uint64_t text_bytes = 0;
  std::uint64_t floats = 0;
  std::uint64_t content_digest = 0;
  std::uint64_t text_room = 0;    // bytes before the floats
  std::uint64_t head_digest = 0;  // of what is before
};
static_assert(sizeof(SlotHead) == kAlignment);

std::uint64_t digest_of(const SlotHead& head) {
  Digest digest;
  for (const std::uint64_t word : {head.magic,
                                   head.step,
                                   head.place_bytes,
                                   head.text_bytes,
                                   head.floats,
                                   head.content_digest,
                                   head.text_room}) {
    digest.add(word);
  }
  return digest.value();
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Four digests side by side: each waits for its own last multiplication alone.
std::uint64_t digest_of(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::size_t kLanes = 4;
  std::uint64_t lanes[kLanes] = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + kLanes * sizeof(std::uint64_t) <= count; at += kLanes * sizeof(std::uint64_t)) {
    std::uint64_t words[kLanes];
    std::memcpy(words, bytes + at, sizeof(words));
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = (lanes[lane] ^ words[lane]) * 0x9e3779b97f4a7c15U;
      lanes[lane] ^= lanes[lane] >> 29U;
    }
  }
  Digest all;
  for (const std::uint64_t lane : lanes) {
    all.add(lane);
  }
  all.add(std::span(bytes + at, count - at));
  return all.value();
}

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw InputError(path.string(),
                   0,
                   fmt::format("no room for the state of the last step: {}",
                               std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

SlotFile::SlotFile(const std::filesystem::path& path, Index text_bytes, Index floats)
    : text_bytes_(aligned(static_cast<std::size_t>(text_bytes))) {
  const std::size_t place =
      aligned(sizeof(SlotHead) + text_bytes_ + static_cast<std::size_t>(floats) * sizeof(float));
  bytes_ = kPlaces * place;
  const int file =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) {
    fail(path);
  }
  // Room is taken now: where there is none, writing to the memory would kill the process.
  errno = ::posix_fallocate(file, 0, static_cast<off_t>(bytes_));
  void* const memory = errno == 0
                           ? ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                           : MAP_FAILED;
  const int error = errno;
  ::close(file);
  if (memory == MAP_FAILED) {
    ::unlink(path.c_str());
    errno = error;
    fail(path);
  }
  memory_ = static_cast<std::uint8_t*>(memory);
}

SlotFile::~SlotFile() {
  ::munmap(memory_, bytes_);
}

void SlotFile::write(Index step,
                     const std::string& text,
                     const std::vector<std::span<const float>>& pieces) {
  std::uint8_t* const place = memory_ + static_cast<std::size_t>(next_) * (bytes_ / kPlaces);
  next_ = (next_ + 1) % kPlaces;
  auto* const head = reinterpret_cast<SlotHead*>(place);
  head->magic = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // a kill comes between two instructions
  std::uint8_t* at = place + sizeof(SlotHead);
  expects(text.size() <= text_bytes_, "there is room for the text");
  std::memset(at, 0, text_bytes_);
  std::memcpy(at, text.data(), text.size());
  at += text_bytes_;
  std::uint64_t floats = 0;
  for (const std::span<const float> piece : pieces) {
    expects(at + piece.size_bytes() <= place + bytes_ / kPlaces, "there is room for the floats");
    std::memcpy(at, piece.data(), piece.size_bytes());
    at += piece.size_bytes();
    floats += piece.size();
  }
  SlotHead written{.magic = kMagic,
                   .step = static_cast<std::uint64_t>(step),
                   .place_bytes = bytes_ / kPlaces,
                   .text_bytes = text.size(),
                   .floats = floats,
                   .text_room = text_bytes_};
  const std::uint8_t* const content = place + sizeof(SlotHead);
  written.content_digest = digest_of(content, static_cast<std::size_t>(at - content));
  written.head_digest = digest_of(written);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(place, &written, sizeof(written));
}

namespace {

class ReadFile {
 public:
  ReadFile(const std::filesystem::path& path, Index most_bytes)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    struct stat found {};
    if (descriptor_ >= 0 && ::fstat(descriptor_, &found) == 0 && S_ISREG(found.st_mode) &&
        found.st_size <= most_bytes) {
      bytes_ = static_cast<std::uint64_t>(found.st_size);
    }
  }
  ~ReadFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool read(std::uint64_t from, void* to, std::size_t count) const {
    for (std::size_t done = 0; done < count;) {
      const ssize_t part = ::pread(descriptor_,
                                   static_cast<std::uint8_t*>(to) + done,
                                   count - done,
                                   static_cast<off_t>(from + done));
      if (part <= 0) {
        return false;
      }
      done += static_cast<std::size_t>(part);
    }
    return true;
  }

 private:
  int descriptor_;
  std::uint64_t bytes_ = 0;
};

bool is_sound(const SlotHead& head, std::uint64_t file_bytes) {
  const std::uint64_t room = file_bytes / kPlaces;
  return head.magic == kMagic && head.head_digest == digest_of(head) && head.place_bytes == room &&
         head.text_bytes <= head.text_room && head.text_room < room &&
         head.floats < room / sizeof(float) &&
         sizeof(SlotHead) + head.text_room + head.floats * sizeof(float) <= room;
}

}  // namespace

std::vector<SlotContent> read_slots(const std::filesystem::path& path, Index most_bytes) {
  const ReadFile file(path, most_bytes);
  std::vector<SlotContent> contents;
  for (std::uint64_t number = 0; number < kPlaces; ++number) {
    SlotHead head;
    const std::uint64_t place = number * (file.bytes() / kPlaces);
    if (file.bytes() < kPlaces * sizeof(SlotHead) || !file.read(place, &head, sizeof(head)) ||
        !is_sound(head, file.bytes())) {
      continue;
    }
    std::vector<std::uint8_t> bytes(head.text_room + head.floats * sizeof(float));
    if (!file.read(place + sizeof(SlotHead), bytes.data(), bytes.size()) ||
        digest_of(bytes.data(), bytes.size()) != head.content_digest) {
      continue;
    }
    SlotContent content{
        .step = static_cast<Index>(head.step),
        .text = std::string(reinterpret_cast<const char*>(bytes.data()), head.text_bytes),
        .floats = std::vector<float>(head.floats)};
    std::memcpy(content.floats.data(), bytes.data() + head.text_room, head.floats * sizeof(float));
    contents.push_back(std::move(content));
  }
  return contents;
}

}  // namespace tessera::engine
