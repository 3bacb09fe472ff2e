// Where a page is served: what a user types, the socket that listens there, and what a browser is
// to be given. Addresses are numbers without brackets; names are looked up once.

#pragma once

#include <string>
#include <vector>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

struct ServeAddress {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: the system chooses one
  friend bool operator==(const ServeAddress&, const ServeAddress&) = default;
};

// "8080", "192.168.1.7:8080", "[::1]:8080", "pi1:8080". Throws InputError that says so.
[[nodiscard]] ServeAddress parse_serve_address(const std::string& text);

struct ListeningSocket {
  Descriptor descriptor;
  std::string address;
  int port = 0;
};
// Throws InputError where this machine has no such address, or the port is not to be had.
[[nodiscard]] ListeningSocket listen_at(const ServeAddress& where);

// What others reach this address by: itself, or where it stands for all, those of this machine's
// interfaces that are up.
[[nodiscard]] std::vector<std::string> reachable_addresses(const std::string& address);

// "http://[fe80::1]:8080/"
[[nodiscard]] std::string url_of(const std::string& address, int port);

}  // namespace tessera::engine
