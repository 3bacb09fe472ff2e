#include "engine/system/control_groups.h"

#include <fmt/format.h>
#include <fstream>

namespace tessera::engine {

namespace fs = std::filesystem;

// Lines of /proc/self/cgroup are ID:CONTROLLERS:PATH; version 2 has the one without controllers.
void for_each_group(const fs::path& root,
                    const std::string& controller,
                    const std::function<void(const fs::path& folder)>& look) {
  std::ifstream file(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool version1 = controllers.find("," + controller + ",") != std::string::npos;
    if (!version1 && controllers != ",,") {
      continue;
    }
    fs::path folder = root / "sys/fs/cgroup";
    folder /= version1 ? controller : "";
    look(folder);
    for (const fs::path& part : fs::path(line.substr(second + 1)).relative_path()) {
      folder /= part;
      look(folder);
    }
  }
}

}  // namespace tessera::engine
