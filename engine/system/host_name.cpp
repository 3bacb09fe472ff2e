#include "engine/system/host_name.h"

#include <algorithm>
#include <array>
#include <unistd.h>

namespace tessera::engine {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

bool is_first_on_host(const std::vector<std::string>& hosts, int rank) {
  const auto own = hosts.begin() + rank;
  return std::find(hosts.begin(), own, *own) == own;
}

}  // namespace tessera::engine
