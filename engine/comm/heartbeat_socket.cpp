#include "engine/comm/heartbeat_socket.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <ifaddrs.h>
#include <map>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "engine/comm/mpi_session.h"

namespace tessera::engine {

namespace {

struct Datagram {
  std::uint64_t key = 0;
  std::uint32_t rank = 0;
  std::uint32_t stuck_ms = 0;
};

socklen_t length_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

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

sockaddr_storage own_address() {
  if (!spans_machines()) {
    return loopback();
  }
  const auto address = address_of_connections();
  return address ? *address : address_of_interfaces();
}

}  // namespace

HeartbeatSocket::HeartbeatSocket(const Communicator& communicator) : rank_(communicator.rank()) {
  sockaddr_storage address = own_address();
  socket_ = ::socket(address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  socklen_t length = length_of(address);
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    address.ss_family = AF_UNSPEC;
  }
  addresses_ = communicator.of_ranks(address);
  std::uint64_t key = 0;
  [[maybe_unused]] const auto drawn = ::getrandom(&key, sizeof key, 0);
  key_ = communicator.share(key);
}

HeartbeatSocket::~HeartbeatSocket() {
  for (const int file : {socket_, wake_}) {
    if (file >= 0) {
      ::close(file);
    }
  }
}

void HeartbeatSocket::send(double stuck_s) const {
  constexpr double kMostS = 4e6;
  const Datagram datagram{key_,
                          static_cast<std::uint32_t>(rank_),
                          static_cast<std::uint32_t>(1e3 * std::min(stuck_s, kMostS))};
  for (std::size_t rank = 0; rank < addresses_.size(); ++rank) {
    const sockaddr_storage& address = addresses_[rank];
    if (static_cast<int>(rank) != rank_ && address.ss_family != AF_UNSPEC) {
      (void)::sendto(socket_,
                     &datagram,
                     sizeof datagram,
                     MSG_DONTWAIT | MSG_NOSIGNAL,
                     reinterpret_cast<const sockaddr*>(&address),
                     length_of(address));
    }
  }
}

std::vector<Heartbeat> HeartbeatSocket::receive(std::chrono::milliseconds longest) const {
  std::array<pollfd, 2> files{{{socket_, POLLIN, 0}, {wake_, POLLIN, 0}}};
  (void)::poll(files.data(), files.size(), static_cast<int>(longest.count()));
  std::vector<Heartbeat> beats;
  Datagram datagram;
  // One byte more than there should be, so that a longer datagram is told apart.
  std::array<char, sizeof datagram + 1> bytes{};
  constexpr int kMost = 1000;  // whatever strangers send
  for (int i = 0; i < kMost; ++i) {
    const auto size = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0) {
      break;
    }
    std::memcpy(&datagram, bytes.data(), sizeof datagram);
    if (size == static_cast<ssize_t>(sizeof datagram) && datagram.key == key_ &&
        datagram.rank < addresses_.size()) {
      beats.push_back({static_cast<int>(datagram.rank), 1e-3 * datagram.stuck_ms});
    }
  }
  return beats;
}

void HeartbeatSocket::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

}  // namespace tessera::engine
