// A kernel filter that drops datagrams of unknown senders before they reach the receive buffer: a
// flood from elsewhere then displaces nothing and wakes nobody.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <sys/socket.h>
#include <vector>

namespace tessera::engine {

// An address of IPv6, or of IPv4 mapped to it, and a port, as on the wire. Not its interface: each
// machine has a number of its own for that.
using DatagramSource = std::array<std::uint8_t, 18>;

[[nodiscard]] DatagramSource source_of(const sockaddr_storage& address);

// Has the kernel drop what comes to a UDP socket of that family (AF_INET, AF_INET6) and is not of
// that size, or not from one of the sources, which are of the same family. Returns false, and
// leaves the socket as it was, where the kernel takes no filter or has no room for one with so many
// sources: whoever receives looks at the same again.
bool drop_all_but(int socket,
                  int family,
                  std::size_t bytes,
                  const std::vector<DatagramSource>& sources);

}  // namespace tessera::engine
