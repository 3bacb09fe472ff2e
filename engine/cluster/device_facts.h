// What a device says of itself when a cluster is examined.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "partitioner/base/region.h"

namespace tessera::engine {

// What files lie on.
enum class Storage { Unknown, Disk, Card, Usb, Network, Memory };

[[nodiscard]] const char* name_of_storage(Storage storage);

// By the type of the file system and, of a disk, its real path below /sys/dev/block.
[[nodiscard]] Storage storage_kind(std::string_view file_system, std::string_view disk);

struct DeviceFacts {
  std::string host_name = {};
  std::string boot = {};          // of the system; no other machine has the same
  std::string version = {};       // of the program, with its sources
  std::string mpi = {};           // "MPICH 4.0.2 (ch4:ucx)"
  std::string architecture = {};  // "aarch64"
  int word_bits = 0;
  bool has_launcher = false;  // what mpiexec starts on a device is there

  Index memory_bytes = 0;
  Index free_memory_bytes = 0;
  Index swap_bytes = 0;
  bool swaps_to_card = false;
  long processors = 0;
  double load = 0;  // processes that wanted a processor, on average over a minute

  bool folder_exists = false;  // the working folder
  bool folder_writable = false;
  Index folder_free_bytes = 0;
  Storage storage = Storage::Unknown;  // of the working folder
  Index shared_memory_free_bytes = 0;  // /dev/shm

  std::string governor = {};  // of the processors' clocks; empty: the kernel has none
  std::optional<double> temperature_c = {};
  std::optional<long> throttled = {};  // bits of a Raspberry Pi's firmware, see BoardSensors

  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};

// Whether both are of one machine, whatever it was called to reach it.
[[nodiscard]] bool is_same_machine(const DeviceFacts& a, const DeviceFacts& b);

// Looks at this machine. `folder` is the working folder, `version` this program's.
[[nodiscard]] DeviceFacts look_at_device(const std::filesystem::path& folder,
                                         const std::string& version);

}  // namespace tessera::engine
