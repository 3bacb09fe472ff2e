#include "engine/comm/heartbeat_socket.h"

#include <cstring>
#include <linux/filter.h>
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
  socket_ = ::socket(address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  socklen_t length = length_of(address);
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    address.ss_family = AF_UNSPEC;
  }
  addresses_ = communicator.of_ranks(address);
  for (std::size_t rank = 0; rank < addresses_.size(); ++rank) {
    if (static_cast<int>(rank) != rank_ && addresses_[rank].ss_family != AF_UNSPEC) {
      ranks_.emplace(source_of(addresses_[rank]), static_cast<int>(rank));
    }
  }
  constexpr int kBufferBytes = 1 << 20;  // as much of it as the system allows
  (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes);
  drop_strangers_early(address.ss_family);
}

HeartbeatSocket::~HeartbeatSocket() {
  for (const int file : {socket_, wake_}) {
    if (file >= 0) {
      ::close(file);
    }
  }
}

HeartbeatSocket::Source HeartbeatSocket::source_of(const sockaddr_storage& address) {
  Source source{};
  if (address.ss_family == AF_INET6) {
    const auto& at = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(source.data(), &at.sin6_addr, 16);
    std::memcpy(source.data() + 16, &at.sin6_port, 2);
  } else if (address.ss_family == AF_INET) {
    const auto& at = reinterpret_cast<const sockaddr_in&>(address);
    source[10] = source[11] = 0xff;
    std::memcpy(source.data() + 12, &at.sin_addr, 4);
    std::memcpy(source.data() + 16, &at.sin_port, 2);
  }
  return source;
}

// receive() looks at the same again: where the kernel takes no filter, or has no room for one that
// names so many ranks, this is left out.
void HeartbeatSocket::drop_strangers_early(int family) const {
  constexpr std::uint32_t kUdpHeaderBytes = 8;
  constexpr std::uint32_t kSourceOfIpv4 = static_cast<std::uint32_t>(SKF_NET_OFF) + 12;
  constexpr std::uint32_t kAll = 0xffffffffU;
  std::vector<sock_filter> filter{
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kUdpHeaderBytes + SealedHeartbeats::kBytes, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0)};
  for (const auto& [source, rank] : ranks_) {
    const auto number = [&at = source](std::size_t first, std::size_t end) {
      std::uint32_t value = 0;
      for (std::size_t i = first; i < end; ++i) {
        value = value << 8U | at[i];
      }
      return value;
    };
    if (family == AF_INET) {  // in a header of IPv6 the port alone has to do
      filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSourceOfIpv4));
      filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number(12, 16), 0, 3));
    }
    filter.push_back(BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number(16, 18), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, kAll));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  if (filter.size() <= BPF_MAXINSNS) {
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    (void)::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  }
}

void HeartbeatSocket::send(double stuck_s) {
  for (const auto& [source, rank] : ranks_) {
    const sockaddr_storage& address = addresses_[static_cast<std::size_t>(rank)];
    if (const auto datagram = heartbeats_.seal(rank, stuck_s)) {
      (void)::sendto(socket_,
                     datagram->data(),
                     datagram->size(),
                     MSG_DONTWAIT | MSG_NOSIGNAL,
                     reinterpret_cast<const sockaddr*>(&address),
                     length_of(address));
    }
  }
}

std::vector<Heartbeat> HeartbeatSocket::receive(std::chrono::milliseconds longest) {
  std::array<pollfd, 2> files{{{socket_, POLLIN, 0}, {wake_, POLLIN, 0}}};
  (void)::poll(files.data(), files.size(), static_cast<int>(longest.count()));
  std::vector<Heartbeat> beats;
  // One byte more than there should be, so that a longer datagram is recognised.
  std::array<std::uint8_t, SealedHeartbeats::kBytes + 1> bytes{};
  constexpr int kMost = 1000;  // whatever strangers send
  for (int i = 0; i < kMost; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const auto size = ::recvfrom(socket_,
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
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

}  // namespace tessera::engine
