#include "engine/comm/heartbeat_socket.h"

#include <netinet/in.h>
#include <poll.h>
#include <span>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/comm/own_address.h"
#include "engine/comm/rank_keys.h"

namespace tessera::engine {

namespace {

socklen_t length_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace

HeartbeatSocket::HeartbeatSocket(const Communicator& communicator)
    : rank_(communicator.rank()), heartbeats_(rank_, keys_with_ranks(communicator, "heartbeat")) {
  sockaddr_storage address = own_address();
  socket_ = Descriptor(::socket(address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  wake_ = Descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  socklen_t length = length_of(address);
  if (!socket_.is_open() ||
      ::bind(socket_.number(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    address.ss_family = AF_UNSPEC;
  }
  addresses_ = communicator.of_ranks(address);
  for (std::size_t rank = 0; rank < addresses_.size(); ++rank) {
    if (static_cast<int>(rank) != rank_ && addresses_[rank].ss_family != AF_UNSPEC) {
      ranks_.emplace(source_of(addresses_[rank]), static_cast<int>(rank));
    }
  }
  constexpr int kBufferBytes = 1 << 20;  // as much of it as the system allows
  (void)::setsockopt(socket_.number(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes);
  std::vector<DatagramSource> sources;
  for (const auto& [source, rank] : ranks_) {
    sources.push_back(source);
  }
  (void)drop_all_but(socket_.number(), address.ss_family, SealedHeartbeats::kBytes, sources);
}

void HeartbeatSocket::send(double stuck_s) {
  for (const auto& [source, rank] : ranks_) {
    const sockaddr_storage& address = addresses_[static_cast<std::size_t>(rank)];
    if (const auto datagram = heartbeats_.seal(rank, stuck_s)) {
      (void)::sendto(socket_.number(),
                     datagram->data(),
                     datagram->size(),
                     MSG_DONTWAIT | MSG_NOSIGNAL,
                     reinterpret_cast<const sockaddr*>(&address),
                     length_of(address));
    }
  }
}

std::vector<Heartbeat> HeartbeatSocket::receive(std::chrono::milliseconds longest) {
  std::array<pollfd, 2> files{{{socket_.number(), POLLIN, 0}, {wake_.number(), POLLIN, 0}}};
  (void)::poll(files.data(), files.size(), static_cast<int>(longest.count()));
  std::vector<Heartbeat> beats;
  // One byte more than there should be, so that a longer datagram is recognised.
  std::array<std::uint8_t, SealedHeartbeats::kBytes + 1> bytes{};
  constexpr int kMost = 1000;  // whatever strangers send
  for (int i = 0; i < kMost; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const auto size = ::recvfrom(socket_.number(),
                                 bytes.data(),
                                 bytes.size(),
                                 MSG_DONTWAIT,
                                 reinterpret_cast<sockaddr*>(&from),
                                 &length);
    if (size < 0) {
      break;
    }
    const auto rank = ranks_.find(source_of(from));
    if (rank == ranks_.end()) {
      continue;
    }
    const auto datagram = std::span(bytes).first(static_cast<std::size_t>(size));
    if (const auto beat = heartbeats_.open(rank->second, datagram)) {
      beats.push_back(*beat);
    }
  }
  return beats;
}

void HeartbeatSocket::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.number(), &one, sizeof one);
}

}  // namespace tessera::engine
