#include "engine/data/cache/shared_memory.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// At the beginning of the memory, in front of what it is used for.
constexpr Index kTokenBytes = 64;

std::uint64_t random_token() {
  std::random_device random;
  return std::uint64_t{random()} << 32U | random();
}

}  // namespace

SharedMemory::SharedMemory() {
  Descriptor file(::memfd_create("tessera-pictures", MFD_CLOEXEC));
  const std::uint64_t token = random_token();
  if (::pwrite(file.number(), &token, sizeof(token), 0) == static_cast<ssize_t>(sizeof(token))) {
    address_ = {::getpid(), file.number(), token};
    file_ = std::move(file);
  }
}

SharedMemory::~SharedMemory() {
  unmap();
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      address_(other.address_),
      bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    unmap();
    file_ = std::move(other.file_);
    address_ = other.address_;
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void SharedMemory::unmap() noexcept {
  if (!bytes_.empty()) {
    ::munmap(bytes_.data() - kTokenBytes, bytes_.size() + static_cast<std::size_t>(kTokenBytes));
  }
}

std::optional<SharedMemory> SharedMemory::open(const Address& address) {
  if (address.descriptor < 0) {
    return std::nullopt;
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", address.process, address.descriptor);
  SharedMemory memory(Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)));
  std::uint64_t token = 0;
  if (::pread(memory.file_.number(), &token, sizeof(token), 0) !=
          static_cast<ssize_t>(sizeof(token)) ||
      token != address.token) {
    return std::nullopt;
  }
  memory.address_ = address;
  return memory;
}

void SharedMemory::map(Index bytes) {
  expects(bytes_.empty() && bytes > 0, "shared memory is mapped once");
  const auto length = static_cast<std::size_t>(kTokenBytes + bytes);
  void* start = MAP_FAILED;
  if (!file_.is_open()) {
    start = ::mmap(nullptr,
                   length,
                   PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1,
                   0);
  } else if (::ftruncate(file_.number(), static_cast<off_t>(length)) == 0) {
    start = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  }
  if (start == MAP_FAILED) {
    throw InputError(
        fmt::format("--cache: {} of memory for pictures cannot be had ({}): give a "
                    "folder for them, or --cache off",
                    readable_bytes(bytes),
                    std::generic_category().message(errno)));
  }
  bytes_ = {static_cast<std::byte*>(start) + kTokenBytes, static_cast<std::size_t>(bytes)};
}

bool SharedMemory::take(Index begin, Index bytes) const {
  return !file_.is_open() || ::fallocate(file_.number(),
                                         0,
                                         static_cast<off_t>(kTokenBytes + begin),
                                         static_cast<off_t>(bytes)) == 0;
}

}  // namespace tessera::engine
