#include "engine/supervisor/connection.h"

#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <net/route.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "engine/supervisor/child_process.h"
#include "engine/supervisor/message_stream.h"

namespace tessera::engine {

namespace {

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

Interfaces interfaces() {
  ifaddrs* first = nullptr;
  return {::getifaddrs(&first) == 0 ? first : nullptr, ::freeifaddrs};
}

// The address of an IPv4 or IPv6 socket address, without port and scope.
std::string address_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes =
      address->sa_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  const bool known = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  return known && ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) != nullptr
             ? text.data()
             : "";
}

// This machine's address on the way to another one; nothing is sent.
std::string address_towards(const addrinfo& there) {
  const Descriptor socket(::socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage mine{};
  socklen_t length = sizeof mine;
  auto* const address = reinterpret_cast<sockaddr*>(&mine);
  const bool found = socket.is_open() &&
                     ::connect(socket.number(), there.ai_addr, there.ai_addrlen) == 0 &&
                     ::getsockname(socket.number(), address, &length) == 0;
  return found ? address_of(address) : "";
}

}  // namespace

std::string interface_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), "9", &hints, &found) != 0) {  // any port
    return "";
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  const Interfaces own = interfaces();
  for (const addrinfo* there = found; there != nullptr; there = there->ai_next) {
    const std::string mine = address_towards(*there);
    for (const ifaddrs* one = own.get(); one != nullptr && !mine.empty(); one = one->ifa_next) {
      if (one->ifa_addr != nullptr && (one->ifa_flags & IFF_LOOPBACK) == 0 &&
          address_of(one->ifa_addr) == mine) {
        return one->ifa_name;
      }
    }
  }
  return "";
}

bool has_carrier(const std::string& interface) {
  const Interfaces own = interfaces();
  for (const ifaddrs* one = own.get(); one != nullptr; one = one->ifa_next) {
    if (one->ifa_name == interface && (one->ifa_flags & IFF_RUNNING) != 0) {
      return true;
    }
  }
  return false;
}

std::string default_gateway() {
  std::ifstream routes("/proc/net/route");
  std::string line;
  std::getline(routes, line);  // names of columns
  std::string interface;
  unsigned long destination = 0;
  unsigned long gateway = 0;
  unsigned long flags = 0;
  while (routes >> interface >> std::hex >> destination >> gateway >> flags &&
         std::getline(routes, line)) {
    if (destination == 0 && (flags & RTF_GATEWAY) != 0) {
      const in_addr address{static_cast<in_addr_t>(gateway)};
      std::array<char, INET_ADDRSTRLEN> text{};
      return ::inet_ntop(AF_INET, &address, text.data(), text.size());
    }
  }
  return "";
}

std::optional<bool> answers_ping(const std::string& address) {
  constexpr int kNotStarted = 127;
  constexpr int kLongest_ms = 3000;
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ChildProcess ping({.words = {"ping", "-n", "-q", "-c", "2", "-i", "0.3", "-W", "1", address},
                     .environment = {},
                     .folder = "",
                     .descriptors = {{0, null.number()}, {1, null.number()}, {2, null.number()}}});
  pollfd ended{ping.descriptor(), POLLIN, 0};
  ::poll(&ended, 1, kLongest_ms);
  const auto end = ping.look();
  if (end && end->code == kNotStarted) {
    return std::nullopt;
  }
  return end && end->code == 0 && end->signal == 0;
}

}  // namespace tessera::engine
