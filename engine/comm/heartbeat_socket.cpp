#include "engine/comm/heartbeat_socket.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "engine/comm/own_address.h"

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
  // One byte more than there should be, so that a longer datagram is recognised.
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
