#include "engine/monitor/network_counters.h"

#include <fstream>
#include <sstream>
#include <utility>

namespace tessera::engine {

// Lines are "  eth0: BYTES PACKETS ERRORS DROPPED FIFO FRAME COMPRESSED MULTICAST", of what came
// in, then eight numbers of what went out. Long names leave no space behind the colon.
std::optional<NetworkCounters> interface_counters(const std::filesystem::path& root,
                                                  const std::string& interface) {
  std::ifstream file(root / "proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.rfind(':');  // an alias has one in its name
    const std::size_t start = line.find_first_not_of(" \t");
    if (colon == std::string::npos || line.substr(start, colon - start) != interface) {
      continue;
    }
    std::istringstream numbers(line.substr(colon + 1));
    NetworkCounters counters;
    double other = 0;
    numbers >> counters.rx_bytes >> counters.rx_packets;
    for (int i = 0; i < 6; ++i) {
      numbers >> other;
    }
    numbers >> counters.tx_bytes >> counters.tx_packets;
    return numbers ? std::optional(counters) : std::nullopt;
  }
  return std::nullopt;
}

double counter_growth(double before, double now) {
  constexpr double kWrap = 4294967296.0;
  if (now >= before) {
    return now - before;
  }
  const bool wrapped = before < kWrap && before - now > kWrap / 2;
  return wrapped ? kWrap - before + now : now;
}

NetworkUse::NetworkUse(std::filesystem::path root, std::string interface)
    : root_(std::move(root)),
      interface_(std::move(interface)),
      last_(interface_counters(root_, interface_)) {}

std::optional<NetworkCounters> NetworkUse::look() {
  const auto now = interface_counters(root_, interface_);
  if (!now || !last_) {
    return std::nullopt;
  }
  for (auto counter : {&NetworkCounters::rx_bytes,
                       &NetworkCounters::rx_packets,
                       &NetworkCounters::tx_bytes,
                       &NetworkCounters::tx_packets}) {
    sum_.*counter += counter_growth((*last_).*counter, (*now).*counter);
  }
  last_ = now;
  return sum_;
}

}  // namespace tessera::engine
