// By which of its networks this machine reaches the other ranks.

#pragma once

#include <string>
#include <sys/socket.h>

namespace tessera::engine {

// This machine's address, without a port, at the connections that MPI has made to other machines;
// loopback where all ranks run on this one. To be asked after messages were exchanged: before, it
// is that of the first interface that is up.
[[nodiscard]] sockaddr_storage own_address();

// The network interface that has it, such as "eth0"; empty where none has.
[[nodiscard]] std::string own_interface();

}  // namespace tessera::engine
