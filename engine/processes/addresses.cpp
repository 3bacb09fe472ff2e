#include "engine/processes/addresses.h"

#include <algorithm>
#include <array>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

namespace tessera::engine {

std::string text_of_address(const sockaddr* address) {
  if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) {
    return "";
  }
  const socklen_t length =
      address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  const int failed =
      ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed != 0 ? "" : text.data();
}

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> result;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) {
    return result;
  }
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    result.push_back({.interface = one->ifa_name,
                      .address = text_of_address(one->ifa_addr),
                      .is_up = (one->ifa_flags & IFF_UP) != 0,
                      .is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0,
                      .has_carrier = (one->ifa_flags & IFF_RUNNING) != 0});
  }
  ::freeifaddrs(all);
  return result;
}

AddressList look_up(const std::string& name, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    found = nullptr;
  }
  return {found, ::freeaddrinfo};
}

std::vector<std::string> addresses_of_name(const std::string& name) {
  const AddressList found = look_up(name, 0);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const std::string text = text_of_address(one->ai_addr);
    if (!text.empty() && std::find(addresses.begin(), addresses.end(), text) == addresses.end()) {
      addresses.push_back(text);
    }
  }
  return addresses;
}

std::string interface_of(const std::string& address) {
  for (const InterfaceAddress& own : interface_addresses()) {
    if (!address.empty() && own.address == address) {
      return own.interface;
    }
  }
  return "";
}

bool is_loopback_address(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

bool is_own_address(const std::string& address) {
  const auto without_interface = [](const std::string& text) {
    return text.substr(0, text.find('%'));
  };
  const std::vector<InterfaceAddress> all = interface_addresses();
  return is_loopback_address(address) ||
         std::any_of(all.begin(), all.end(), [&](const InterfaceAddress& own) {
           return !address.empty() && without_interface(own.address) == without_interface(address);
         });
}

}  // namespace tessera::engine
