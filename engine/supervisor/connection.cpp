#include "engine/supervisor/connection.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <fstream>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "engine/processes/addresses.h"
#include "engine/processes/child_process.h"

namespace tessera::engine {

namespace {

// This machine's address on the way to another one; nothing is sent.
std::string address_towards(const addrinfo& there) {
  const Descriptor socket(::socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage mine{};
  socklen_t length = sizeof mine;
  auto* const address = reinterpret_cast<sockaddr*>(&mine);
  const bool found = socket.is_open() &&
                     ::connect(socket.number(), there.ai_addr, there.ai_addrlen) == 0 &&
                     ::getsockname(socket.number(), address, &length) == 0;
  return found ? text_of_address(address) : "";
}

}  // namespace

std::string interface_towards(const std::string& host) {
  constexpr int kAnyPort = 9;
  const AddressList all = look_up(host, kAnyPort);
  for (const addrinfo* there = all.get(); there != nullptr; there = there->ai_next) {
    const std::string mine = address_towards(*there);
    for (const InterfaceAddress& own : interface_addresses()) {
      if (!mine.empty() && !own.is_loopback && own.address == mine) {
        return own.interface;
      }
    }
  }
  return "";
}

bool has_carrier(const std::string& interface) {
  const std::vector<InterfaceAddress> own = interface_addresses();
  return std::any_of(own.begin(), own.end(), [&](const InterfaceAddress& one) {
    return one.interface == interface && one.has_carrier;
  });
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
  constexpr double kLongest_s = 3;
  ChildProcess ping({.words = {"ping", "-n", "-q", "-c", "2", "-i", "0.3", "-W", "1", address}});
  const auto end = ping.wait(kLongest_s);
  if (end && end->code == kNotStarted) {
    return std::nullopt;
  }
  return end == ProcessEnd();
}

}  // namespace tessera::engine
