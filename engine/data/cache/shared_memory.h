// Memory that processes of one machine share, without a name that could be left behind: the kernel
// frees it with the last process that has it, however that ends.
//
// One process makes it and tells the others its address. They open it while its maker has it; a
// process that cannot (it sees other processes than the maker does) has to do without.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "engine/processes/descriptor.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class SharedMemory {
 public:
  // Where other processes find it. Plain values, to be sent.
  struct Address {
    std::int64_t process = 0;
    std::int64_t descriptor = -1;  // -1: it cannot be shared
    std::uint64_t token = 0;       // tells it from what others have under the same numbers
  };

  // Takes no memory yet. Where the kernel has none to share it is this process's alone.
  SharedMemory();
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  // That of another process; nothing where it cannot be opened.
  [[nodiscard]] static std::optional<SharedMemory> open(const Address& address);
  [[nodiscard]] const Address& address() const { return address_; }

  // Makes it so long for all; all that share it may call this with the same length, once. Memory is
  // taken, and is 0, when it is first used. Throws InputError where there are not so many
  // addresses.
  void map(Index bytes);
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

  // Takes the memory of a part of it now. Returns whether there was any.
  [[nodiscard]] bool take(Index begin, Index bytes) const;

 private:
  explicit SharedMemory(Descriptor file) : file_(std::move(file)) {}
  void unmap() noexcept;

  Descriptor file_;  // none: it cannot be shared
  Address address_;
  std::span<std::byte> bytes_;
};

}  // namespace tessera::engine
