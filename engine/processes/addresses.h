// Addresses of this machine and of names, as text: "192.168.1.7", "fe80::1%eth0".

#pragma once

#include <memory>
#include <netdb.h>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace tessera::engine {

// An address of one of this machine's network interfaces.
struct InterfaceAddress {
  std::string interface;
  std::string address;  // empty: neither of IPv4 nor of IPv6, as each interface has one
  bool is_up = false;
  bool is_loopback = false;
  bool has_carrier = false;
};

[[nodiscard]] std::vector<InterfaceAddress> interface_addresses();

// Without its port; empty where it is neither of IPv4 nor of IPv6.
[[nodiscard]] std::string text_of_address(const sockaddr* address);

// What a name or an address and a port stand for; null: nothing. `flags` as those of getaddrinfo().
// May wait for a name server.
using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
[[nodiscard]] AddressList look_up(const std::string& name, int port, int flags = 0);

// Each once.
[[nodiscard]] std::vector<std::string> addresses_of_name(const std::string& name);

// The network interface that has this address, such as "eth0"; empty where none has.
[[nodiscard]] std::string interface_of(const std::string& address);

[[nodiscard]] bool is_loopback_address(const std::string& address);
// Of the loopback, or of an interface, which "fe80::1" need not name.
[[nodiscard]] bool is_own_address(const std::string& address);

}  // namespace tessera::engine
