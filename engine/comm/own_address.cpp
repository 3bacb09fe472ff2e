#include "engine/comm/own_address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <ifaddrs.h>
#include <map>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <utility>

#include "engine/comm/mpi_session.h"

namespace tessera::engine {

namespace {

// Without its port.
std::optional<std::string> host_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& at = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return std::string(reinterpret_cast<const char*>(&at), sizeof at);
  }
  if (address.ss_family == AF_INET6) {
    const auto& at = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return std::string(reinterpret_cast<const char*>(&at), sizeof at);
  }
  return std::nullopt;
}

void clear_port(sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = 0;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = 0;
  }
}

sockaddr_storage loopback() {
  sockaddr_storage address{};
  auto& at = reinterpret_cast<sockaddr_in&>(address);
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

using NameOf = int (*)(int, sockaddr*, socklen_t*);

std::optional<sockaddr_storage> name_of(int socket, NameOf ask) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (ask(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0 || !host_of(address)) {
    return std::nullopt;
  }
  return address;
}

// This machine's address at the connections that MPI has made to other machines.
std::optional<sockaddr_storage> address_of_connections() {
  std::map<std::string, std::pair<int, sockaddr_storage>> found;  // how often, by host
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int socket = std::atoi(entry.path().filename().c_str());
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) {
      continue;
    }
    auto mine = name_of(socket, ::getsockname);
    const auto theirs = name_of(socket, ::getpeername);
    if (mine && theirs && host_of(*mine) != host_of(*theirs)) {
      clear_port(*mine);
      auto& [count, address] = found[*host_of(*mine)];
      ++count;
      address = *mine;
    }
  }
  const auto most = std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.second.first < b.second.first;
  });
  return most == found.end() ? std::nullopt : std::optional(most->second.second);
}

// The first of an interface that is up, where no connection tells.
sockaddr_storage address_of_interfaces() {
  sockaddr_storage address = loopback();
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) {
    return address;
  }
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
        (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0) {
      std::memcpy(&address, one->ifa_addr, sizeof(sockaddr_in));
      break;
    }
  }
  ::freeifaddrs(all);
  return address;
}

}  // namespace

sockaddr_storage own_address() {
  if (!spans_machines()) {
    return loopback();
  }
  const auto address = address_of_connections();
  return address ? *address : address_of_interfaces();
}

std::string interface_of(const sockaddr_storage& address) {
  std::string name;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) {
    return name;
  }
  const auto wanted = host_of(address);
  for (const ifaddrs* one = all; one != nullptr && name.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != address.ss_family) {
      continue;
    }
    sockaddr_storage its{};
    std::memcpy(&its,
                one->ifa_addr,
                address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (host_of(its) == wanted) {
      name = one->ifa_name;
    }
  }
  ::freeifaddrs(all);
  return name;
}

}  // namespace tessera::engine
