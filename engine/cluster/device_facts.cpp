#include "engine/cluster/device_facts.h"

#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

#include "engine/comm/mpi_session.h"
#include "engine/monitor/board_sensors.h"
#include "engine/system/host_name.h"
#include "engine/system/system_memory.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 6> kStorageNames{
    "unknown", "disk", "SD card", "USB", "network", "memory"};

std::string disk_of(dev_t device) {
  std::error_code error;
  return fs::canonical(fmt::format("/sys/dev/block/{}:{}", ::major(device), ::minor(device)), error)
      .string();
}

// A line of /proc/self/mountinfo: "36 35 98:0 /mnt1 /mnt2 rw shared:1 - ext4 /dev/root rw".
struct Mount {
  std::string device;  // "98:0"
  std::string file_system;
  std::string source;
};

std::optional<Mount> mount_of_line(const std::string& line) {
  std::istringstream words(line);
  Mount mount;
  std::string word;
  if (!(words >> word >> word >> mount.device)) {
    return std::nullopt;
  }
  while (words >> word && word != "-") {
  }
  return words >> mount.file_system >> mount.source ? std::optional(mount) : std::nullopt;
}

Storage storage_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    return Storage::Unknown;
  }
  const std::string device = fmt::format("{}:{}", ::major(found.st_dev), ::minor(found.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto mount = mount_of_line(line);
    if (mount && mount->device == device) {
      struct stat source {};
      const bool of_disk = ::stat(mount->source.c_str(), &source) == 0 && S_ISBLK(source.st_mode);
      return storage_kind(mount->file_system, disk_of(of_disk ? source.st_rdev : found.st_dev));
    }
  }
  return Storage::Unknown;
}

// Of a line of /proc/swaps: a file, or a partition.
bool is_on_card(const std::string& swap) {
  struct stat found {};
  if (::stat(swap.c_str(), &found) != 0) {
    return false;
  }
  return S_ISBLK(found.st_mode) ? storage_kind("", disk_of(found.st_rdev)) == Storage::Card
                                : storage_of(swap) == Storage::Card;
}

bool swaps_to_card() {
  std::ifstream file("/proc/swaps");
  std::string line;
  std::getline(file, line);  // titles
  while (std::getline(file, line)) {
    if (is_on_card(line.substr(0, line.find_first_of(" \t")))) {
      return true;
    }
  }
  return false;
}

// mpiexec looks for it in the folder of its own, the same on all devices: Debian's package has both
// in /usr/bin.
bool has_launcher() {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::istringstream folders(std::string("/usr/bin:/usr/local/bin:") +
                             (path == nullptr ? "" : path));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / "hydra_pmi_proxy").c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

Index bytes_in_meminfo(const std::string& name) {
  constexpr Index kKibibyte = 1024;
  return kKibibyte * number_after("/proc/meminfo", name).value_or(0);
}

Index free_bytes_of(const fs::path& path) {
  struct statvfs space {};
  return ::statvfs(path.c_str(), &space) != 0
             ? 0
             : static_cast<Index>(space.f_bavail) * static_cast<Index>(space.f_frsize);
}

std::string first_word_of(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

const char* name_of_storage(Storage storage) {
  return kStorageNames[static_cast<std::size_t>(storage)];
}

Storage storage_kind(std::string_view file_system, std::string_view disk) {
  const auto starts = [&](std::string_view with) { return file_system.rfind(with, 0) == 0; };
  const auto lies_below = [&](std::string_view part) {
    return disk.find(part) != std::string_view::npos;
  };
  if (starts("nfs") || starts("cifs") || starts("smb") || starts("9p") || starts("fuse.sshfs") ||
      starts("ceph") || starts("glusterfs")) {
    return Storage::Network;
  }
  if (file_system == "tmpfs" || file_system == "ramfs") {
    return Storage::Memory;
  }
  if (lies_below("/mmc_host/")) {
    return Storage::Card;
  }
  if (lies_below("/usb")) {
    return Storage::Usb;
  }
  return disk.empty() ? Storage::Unknown : Storage::Disk;
}

// The addresses would not do: each machine with Docker has that of its bridge. Containers and
// emulated devices share a kernel.
bool is_same_machine(const DeviceFacts& a, const DeviceFacts& b) {
  return a.boot == b.boot && a.host_name == b.host_name;
}

DeviceFacts look_at_device(const fs::path& folder, const std::string& version) {
  constexpr int kBitsOfByte = 8;
  DeviceFacts facts;
  facts.host_name = host_name();
  facts.boot = first_word_of("/proc/sys/kernel/random/boot_id");
  facts.version = version;
  facts.mpi = mpi_library();
  utsname system{};
  ::uname(&system);
  facts.architecture = system.machine;
  facts.word_bits = kBitsOfByte * static_cast<int>(sizeof(void*));
  facts.has_launcher = has_launcher();
  facts.memory_bytes = bytes_in_meminfo("MemTotal:");
  facts.free_memory_bytes = free_memory_bytes();
  facts.swap_bytes = bytes_in_meminfo("SwapTotal:");
  facts.swaps_to_card = swaps_to_card();
  facts.processors = static_cast<long>(std::thread::hardware_concurrency());
  double load = 0;
  facts.load = ::getloadavg(&load, 1) == 1 ? load : 0;
  std::error_code error;
  facts.folder_exists = fs::is_directory(folder, error);
  facts.folder_writable = facts.folder_exists && ::access(folder.c_str(), W_OK) == 0;
  facts.folder_free_bytes = free_bytes_of(folder);
  facts.storage = storage_of(folder);
  facts.shared_memory_free_bytes = free_bytes_of("/dev/shm");
  facts.governor = first_word_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  BoardSensors sensors("/");
  facts.temperature_c = sensors.temperature_c();
  if (const auto flags = sensors.throttled()) {
    facts.throttled = static_cast<long>(*flags);
  }
  return facts;
}

}  // namespace tessera::engine
