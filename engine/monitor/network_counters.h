// Bytes and packets that have gone through a network interface of this machine: those of all
// programs.

#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tessera::engine {

struct NetworkCounters {
  double rx_bytes = 0;  // in
  double rx_packets = 0;
  double tx_bytes = 0;  // out
  double tx_packets = 0;
  friend bool operator==(const NetworkCounters&, const NetworkCounters&) = default;
};

// As the kernel counts them, from /proc/net/dev below `root`: of this process's network namespace.
// Nothing where there is no such interface.
[[nodiscard]] std::optional<NetworkCounters> interface_counters(const std::filesystem::path& root,
                                                                const std::string& interface);

// The same since this was made. Counters of 32 bits may wrap; those of an interface that went away
// and came back start at 0 again.
class NetworkUse {
 public:
  NetworkUse(std::filesystem::path root, std::string interface);

  // Nothing where the interface is not there, now or from the beginning.
  [[nodiscard]] std::optional<NetworkCounters> look();

 private:
  std::filesystem::path root_;
  std::string interface_;
  std::optional<NetworkCounters> last_;
  NetworkCounters sum_;
};

// What a counter has counted between two looks at it.
[[nodiscard]] double counter_growth(double before, double now);

}  // namespace tessera::engine
