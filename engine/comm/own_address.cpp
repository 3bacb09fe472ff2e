#include "engine/comm/own_address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <utility>

#include "engine/comm/mpi_session.h"
#include "engine/processes/addresses.h"

namespace tessera::engine {

namespace {

std::string text_of(const sockaddr_storage& address) {
  return text_of_address(reinterpret_cast<const sockaddr*>(&address));
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
  if (ask(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      text_of(address).empty()) {
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
    if (mine && theirs && text_of(*mine) != text_of(*theirs)) {
      clear_port(*mine);
      auto& [count, address] = found[text_of(*mine)];
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
  for (const InterfaceAddress& own : interface_addresses()) {
    if (own.is_up && !own.is_loopback &&
        ::inet_pton(
            AF_INET, own.address.c_str(), &reinterpret_cast<sockaddr_in&>(address).sin_addr) == 1) {
      break;
    }
  }
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

std::string own_interface() {
  return interface_of(text_of(own_address()));
}

}  // namespace tessera::engine
