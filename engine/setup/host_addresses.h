// Addresses of this machine and of names, as text: "192.168.1.7", "fe80::1%eth0".

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera::engine {

// An address of one of this machine's network interfaces that are up.
struct InterfaceAddress {
  std::string address;
  std::string interface;
  std::optional<double> bits_per_s;  // that the interface has negotiated, where it says so
  bool wireless = false;
};

// Without those of the loopback.
[[nodiscard]] std::vector<InterfaceAddress> interface_addresses();

// What each name resolves to here; without addresses those that do not, or not within
// `timeout_s`, as where no name server answers. All names are asked for at the same time.
[[nodiscard]] std::map<std::string, std::vector<std::string>> resolve_names(
    const std::vector<std::string>& names, double timeout_s);

[[nodiscard]] bool is_loopback_address(const std::string& address);

}  // namespace tessera::engine
