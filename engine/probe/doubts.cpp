#include "engine/probe/doubts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "partitioner/base/quantities.h"

namespace tessera::engine {

std::vector<std::string> doubts(const partitioner::DeviceProfile& measured,
                                const DeviceLimits& limits) {
  constexpr double kNoise = 1.1;
  constexpr double kMostOfTheTime = 0.5;
  std::vector<std::string> found;
  double fastest = 0;
  for (const double bytes_per_s : {measured.send_bytes_per_s, measured.receive_bytes_per_s}) {
    fastest = std::isfinite(bytes_per_s) ? std::max(fastest, 8 * bytes_per_s) : fastest;
  }
  if (limits.negotiated_bits_per_s && fastest > kNoise * *limits.negotiated_bits_per_s) {
    found.push_back(
        fmt::format("{:.0f} Mbit/s were measured, but {} has negotiated {:.0f}: messages do not go "
                    "over it, or ranks share a machine; -iface and UCX_NET_DEVICES choose the link",
                    1e-6 * fastest,
                    limits.interface,
                    1e-6 * *limits.negotiated_bits_per_s));
  }
  if (limits.memory_bytes && measured.memory_bytes > *limits.memory_bytes) {
    found.push_back(
        fmt::format("{} of memory are free, but `ulimit` allows a process {}: lower "
                    "memory_bytes, or raise the limit",
                    readable_bytes(measured.memory_bytes),
                    readable_bytes(*limits.memory_bytes)));
  }
  if (limits.throttled_share > kMostOfTheTime) {
    found.push_back(fmt::format(
        "its processor quota was used up in {:.0f} % of the periods: rates are means of "
        "working and standing still, and waits for messages are longer than planned",
        100 * limits.throttled_share));
  }
  return found;
}

}  // namespace tessera::engine
