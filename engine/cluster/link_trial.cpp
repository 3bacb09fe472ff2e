#include "engine/cluster/link_trial.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <vector>

#include "engine/processes/addresses.h"
#include "engine/supervisor/state_folder.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// What the side that connects asks for: an answer of a byte, taking bytes, or sending bytes.
constexpr char kAsk = 'a';
constexpr char kTake = 't';
constexpr char kSend = 's';

constexpr std::uint32_t kFirstBytes = 1U << 16U;
constexpr std::uint32_t kMostBytes = 1U << 24U;
constexpr double kLongEnough_s = 0.15;  // that a transfer lasts, for its rate to count
constexpr double kForConnection_s = 2;  // where a firewall drops it, nothing comes back
constexpr int kRoundTrips = 20;

AddressList address_in(const std::string& text, int port) {
  AddressList found = look_up(text, port, AI_NUMERICHOST);
  if (!found) {
    throw InputError(fmt::format("\"{}\" is no address", text));
  }
  return found;
}

Descriptor new_socket(int family) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) {
    throw InputError("no more sockets can be opened");
  }
  return socket;
}

// Whether the socket became ready before that moment.
bool is_ready_before(int socket, short events, double end_s) {
  constexpr double kResolution_s = 1e-3;
  const double left_s = end_s - now_s();
  return left_s > 0 && is_ready(socket, events, left_s + kResolution_s);
}

// A connection with one moment by which all has to be over. What does not succeed throws
// InputError.
class Connection {
 public:
  Connection(Descriptor socket, double end_s) : socket_(std::move(socket)), end_s_(end_s) {
    const int on = 1;
    ::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  void send(const void* bytes, std::size_t count) {
    const char* at = static_cast<const char*>(bytes);
    while (count > 0) {
      const ssize_t sent = ::send(socket_.number(), at, count, MSG_NOSIGNAL);
      if (sent > 0) {
        at += sent;
        count -= static_cast<std::size_t>(sent);
      } else {
        wait(POLLOUT);
      }
    }
  }

  void receive(void* bytes, std::size_t count) {
    char* at = static_cast<char*>(bytes);
    while (count > 0) {
      const ssize_t received = ::recv(socket_.number(), at, count, 0);
      if (received == 0) {
        throw InputError("the connection was closed");
      }
      if (received > 0) {
        at += received;
        count -= static_cast<std::size_t>(received);
      } else {
        wait(POLLIN);
      }
    }
  }

  void send_letter(char letter) { send(&letter, 1); }
  [[nodiscard]] char receive_letter() {
    char letter = 0;
    receive(&letter, 1);
    return letter;
  }

  void send_many(std::uint32_t count) {
    for (std::uint32_t left = count; left > 0;) {
      const std::uint32_t part = std::min(left, kFirstBytes);
      send(block_.data(), part);
      left -= part;
    }
  }
  void receive_many(std::uint32_t count) {
    for (std::uint32_t left = count; left > 0;) {
      const std::uint32_t part = std::min(left, kFirstBytes);
      receive(block_.data(), part);
      left -= part;
    }
  }

 private:
  void wait(short events) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      throw InputError(std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    }
    if (!is_ready_before(socket_.number(), events, end_s_)) {
      throw InputError("no answer");
    }
  }

  Descriptor socket_;
  double end_s_;
  std::vector<char> block_ = std::vector<char>(kFirstBytes, 'x');
};

Descriptor connected_socket(const std::string& address, int port, double end_s) {
  const AddressList target = address_in(address, port);
  Descriptor socket = new_socket(target->ai_family);
  if (::connect(socket.number(), target->ai_addr, target->ai_addrlen) != 0) {
    int failure = errno;
    if (failure == EINPROGRESS) {
      if (!is_ready_before(socket.number(), POLLOUT, end_s)) {
        throw InputError("no answer");
      }
      socklen_t size = sizeof failure;
      ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &failure, &size);
    }
    if (failure != 0) {
      throw InputError(std::strerror(failure));  // NOLINT(concurrency-mt-unsafe)
    }
  }
  return socket;
}

bool has_token(Connection& connection, const std::string& token) {
  std::array<char, kTokenBytes> sent{};
  connection.receive(sent.data(), sent.size());
  return token.size() == kTokenBytes &&
         ::sodium_memcmp(sent.data(), token.data(), kTokenBytes) == 0;
}

// In network order, as all numbers on the wire.
std::uint32_t receive_count(Connection& connection) {
  std::uint32_t count = 0;
  connection.receive(&count, sizeof count);
  return std::min(ntohl(count), kMostBytes);
}

void serve_trial(Connection& connection) {
  for (;;) {
    switch (connection.receive_letter()) {
      case kAsk:
        connection.send_letter(kAsk);
        break;
      case kTake:
        connection.receive_many(receive_count(connection));
        connection.send_letter(kTake);
        break;
      case kSend:
        connection.send_many(receive_count(connection));
        break;
      default:
        return;
    }
  }
}

// Bytes per second of the first transfer that takes long enough to say so.
double rate_of(Connection& connection, char direction, double round_trip_s) {
  for (std::uint32_t count = kFirstBytes;; count *= 4) {
    const double begin_s = now_s();
    const std::uint32_t wanted = htonl(count);
    connection.send_letter(direction);
    connection.send(&wanted, sizeof wanted);
    if (direction == kTake) {
      connection.send_many(count);
      (void)connection.receive_letter();
    } else {
      connection.receive_many(count);
    }
    const double took_s = now_s() - begin_s;
    if (took_s >= kLongEnough_s || count >= kMostBytes) {
      return count / std::max(took_s - round_trip_s, 1e-6);
    }
  }
}

}  // namespace

std::string new_token() {
  return new_run_number() + new_run_number();
}

LinkListener::LinkListener(const std::string& address) {
  const AddressList own = address_in(address, 0);
  socket_ = new_socket(own->ai_family);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::bind(socket_.number(), own->ai_addr, own->ai_addrlen) != 0 ||
      ::listen(socket_.number(), 4) != 0 ||
      ::getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    throw InputError(fmt::format("{}: {}",
                                 address,
                                 std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  }
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

bool LinkListener::serve(const std::string& token, double timeout_s) {
  constexpr double kForToken_s = 1;
  const double end_s = now_s() + timeout_s;
  const double connected_s = std::min(end_s, now_s() + kForConnection_s + kForToken_s);
  while (is_ready_before(socket_.number(), POLLIN, connected_s)) {
    Descriptor socket(::accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      continue;
    }
    try {
      // A stranger who sends nothing does not keep the other side out.
      Connection asking(Descriptor(::fcntl(socket.number(), F_DUPFD_CLOEXEC, 0)),
                        std::min(end_s, now_s() + kForToken_s));
      if (has_token(asking, token)) {
        Connection connection(std::move(socket), end_s);
        serve_trial(connection);
        return true;
      }
    } catch (const InputError&) {
      // That connection is over; another one may be the right one.
    }
  }
  return false;
}

LinkRates try_link(const std::string& address,
                   int port,
                   const std::string& token,
                   double timeout_s) {
  const double begin_s = now_s();
  Connection connection(
      connected_socket(address, port, begin_s + std::min(kForConnection_s, timeout_s)),
      begin_s + timeout_s);
  connection.send(token.data(), token.size());
  LinkRates rates;
  for (int i = 0; i < kRoundTrips; ++i) {
    const double asked_s = now_s();
    connection.send_letter(kAsk);
    (void)connection.receive_letter();
    const double took_s = now_s() - asked_s;
    rates.round_trip_s = i == 0 ? took_s : std::min(rates.round_trip_s, took_s);
  }
  rates.to_bytes_per_s = rate_of(connection, kTake, rates.round_trip_s);
  rates.from_bytes_per_s = rate_of(connection, kSend, rates.round_trip_s);
  connection.send_letter('e');
  return rates;
}

}  // namespace tessera::engine
