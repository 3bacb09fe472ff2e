#include "engine/serve/serve_address.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <optional>
#include <regex>
#include <sys/socket.h>
#include <system_error>

#include "engine/processes/addresses.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

bool stands_for_all(const std::string& address) {
  return address == "0.0.0.0" || address == "::";
}

bool is_link_local(const std::string& address) {
  return address.starts_with("fe80:") || address.starts_with("169.254.");
}

[[noreturn]] void fail_to_listen(const ServeAddress& where, int error) {
  const bool v6 = where.host.find(':') != std::string::npos;
  const std::string place =
      fmt::format("{0}{1}{2}:{3}", v6 ? "[" : "", where.host, v6 ? "]" : "", where.port);
  std::string reason = std::generic_category().message(error);
  if (error == EADDRINUSE) {
    reason = "another program uses this port: give another one, or 0 for any that is free";
  } else if (error == EACCES) {
    reason = "this port is kept for the system: give one from 1024 on";
  } else if (error == EADDRNOTAVAIL) {
    reason = fmt::format("this machine has no such address: it has {}",
                         fmt::join(reachable_addresses("0.0.0.0"), ", "));
  }
  throw InputError(fmt::format("--serve {}: {}", place, reason));
}

// Error numbers; 0: it listens.
int try_to_listen(const Descriptor& socket, const addrinfo& place) {
  constexpr int kWaiting = 64;  // connections that nobody has taken yet
  const int on = 1;
  const int off = 0;
  // Connections of an earlier program that are not quite over are no reason to refuse.
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (place.ai_family == AF_INET6) {
    ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  const bool listens = ::bind(socket.number(), place.ai_addr, place.ai_addrlen) == 0 &&
                       ::listen(socket.number(), kWaiting) == 0;
  return listens ? 0 : errno;
}

int port_of(const Descriptor& socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return 0;
  }
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

}  // namespace

ServeAddress parse_serve_address(const std::string& text) {
  constexpr int kMostPort = 65535;
  constexpr std::size_t kMostLetters = 300;
  // An address in brackets or a name, and a port.
  static const std::regex form(
      R"((?:(?:\[([0-9A-Fa-f:.]+(?:%[^\]\s]+)?)\]|([^\[\]:/?#@%\s]+)):)?(\d{1,5}))");
  std::smatch parts;
  if (text.size() < kMostLetters && std::regex_match(text, parts, form)) {
    if (const auto port = parsed_number<int>(parts[3].str(), 0, kMostPort)) {
      ServeAddress where{.port = *port};
      for (const std::size_t part : {1, 2}) {
        where.host = parts[part].matched ? parts[part].str() : where.host;
      }
      return where;
    }
  }
  throw InputError(
      fmt::format("--serve: \"{}\" is neither a port nor an address with one: expected a number "
                  "from 0 to 65535, for "
                  "this machine alone, or ADDRESS:PORT, such as 0.0.0.0:8080 or [::1]:8080",
                  printable_start(text)));
}

ListeningSocket listen_at(const ServeAddress& where) {
  const AddressList found = look_up(where.host, where.port, AI_PASSIVE);
  if (!found) {
    throw InputError(
        fmt::format("--serve: \"{}\" is neither an address nor a name that stands for one: give an "
                    "address of this machine, 0.0.0.0 for all",
                    printable_start(where.host)));
  }
  int error = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    error = socket.is_open() ? try_to_listen(socket, *one) : errno;
    if (error == 0) {
      const int port = port_of(socket);
      return {std::move(socket), text_of_address(one->ai_addr), port};
    }
  }
  fail_to_listen(where, error);
}

std::vector<std::string> reachable_addresses(const std::string& address) {
  if (!stands_for_all(address)) {
    return {address};
  }
  std::vector<std::string> found;
  for (const InterfaceAddress& own : interface_addresses()) {
    const bool v6 = own.address.find(':') != std::string::npos;
    if (own.is_up && !own.is_loopback && !own.address.empty() && !is_link_local(own.address) &&
        (!v6 || address == "::")) {
      found.push_back(own.address);
    }
  }
  return found.empty() ? std::vector<std::string>{"127.0.0.1"} : found;
}

std::string url_of(const std::string& address, int port) {
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}/", v6 ? "[" : "", address, v6 ? "]" : "", port);
}

}  // namespace tessera::engine
