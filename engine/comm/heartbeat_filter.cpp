#include "engine/comm/heartbeat_filter.h"

#include <cstring>
#include <linux/filter.h>
#include <netinet/in.h>

namespace tessera::engine {

namespace {

constexpr std::size_t kPortAt = 16;  // of a source
constexpr std::size_t kIpv4At = 12;  // likewise
constexpr std::uint8_t kWordBytes = 4;

std::uint32_t big_endian(const DatagramSource& source, std::size_t first, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = first; i < first + bytes; ++i) {
    value = value << 8U | source[i];
  }
  return value;
}

// A datagram from the source is taken; else the instruction after these is the next one.
void append_source(std::vector<sock_filter>& filter, int family, const DatagramSource& source) {
  constexpr std::uint32_t kAll = 0xffffffffU;
  constexpr auto kIpHeader = static_cast<std::uint32_t>(SKF_NET_OFF);
  const bool four = family == AF_INET;
  const std::uint32_t address_in_header = kIpHeader + (four ? 12 : 8);
  const std::size_t first = four ? kIpv4At : 0;
  // Two instructions for each word of the address, two for the port, one that takes.
  const std::size_t instructions = 2 * (kPortAt - first) / kWordBytes + 3;
  const std::size_t begin = filter.size();
  const auto compare = [&](std::uint32_t value) {
    const auto left = static_cast<std::uint8_t>(begin + instructions - filter.size() - 1);
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, left));
  };
  for (std::size_t at = first; at < kPortAt; at += kWordBytes) {
    const auto offset = static_cast<std::uint32_t>(address_in_header + at - first);
    filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
    compare(big_endian(source, at, kWordBytes));
  }
  filter.push_back(BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0));  // UDP's header begins with the port
  compare(big_endian(source, kPortAt, 2));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, kAll));
}

}  // namespace

DatagramSource source_of(const sockaddr_storage& address) {
  DatagramSource source{};
  if (address.ss_family == AF_INET6) {
    const auto& at = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(source.data(), &at.sin6_addr, 16);
    std::memcpy(source.data() + kPortAt, &at.sin6_port, 2);
  } else if (address.ss_family == AF_INET) {
    const auto& at = reinterpret_cast<const sockaddr_in&>(address);
    source[10] = source[11] = 0xff;
    std::memcpy(source.data() + kIpv4At, &at.sin_addr, 4);
    std::memcpy(source.data() + kPortAt, &at.sin_port, 2);
  }
  return source;
}

bool drop_all_but(int socket,
                  int family,
                  std::size_t bytes,
                  const std::vector<DatagramSource>& sources) {
  constexpr std::size_t kUdpHeaderBytes = 8;
  std::vector<sock_filter> filter{
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_JUMP(
          BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(kUdpHeaderBytes + bytes), 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0)};
  for (const DatagramSource& source : sources) {
    append_source(filter, family, source);
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  if (filter.size() > BPF_MAXINSNS) {
    return false;
  }
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

}  // namespace tessera::engine
