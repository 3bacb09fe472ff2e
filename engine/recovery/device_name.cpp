#include "engine/recovery/device_name.h"

#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>

#include "engine/system/host_name.h"

namespace tessera::engine {

std::string device_name(const std::filesystem::path& folder) {
  std::string started;  // a number of this start of the system's
  std::ifstream("/proc/sys/kernel/random/boot_id") >> started;
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) {
    found = {};
  }
  return fmt::format("{} {} {}:{}", host_name(), started, found.st_dev, found.st_ino);
}

}  // namespace tessera::engine
