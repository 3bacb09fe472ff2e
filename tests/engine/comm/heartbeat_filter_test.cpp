#include "engine/comm/heartbeat_filter.h"

#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

constexpr std::size_t kTakenBytes = 52;

// A UDP socket on the loopback; without a number where this machine has none of that family.
class LoopbackSocket {
 public:
  explicit LoopbackSocket(int family) : number_(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    auto& four = reinterpret_cast<sockaddr_in&>(address_);
    auto& six = reinterpret_cast<sockaddr_in6&>(address_);
    if (family == AF_INET) {
      four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      six.sin6_addr = in6addr_loopback;
    }
    address_.ss_family = static_cast<sa_family_t>(family);
    length_ = family == AF_INET ? sizeof four : sizeof six;
    if (::bind(number_, reinterpret_cast<sockaddr*>(&address_), length_) != 0 ||
        ::getsockname(number_, reinterpret_cast<sockaddr*>(&address_), &length_) != 0) {
      ::close(number_);
      number_ = -1;
    }
  }
  ~LoopbackSocket() { ::close(number_); }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] DatagramSource source() const { return source_of(address_); }

  void send(const LoopbackSocket& to, char mark, std::size_t bytes = kTakenBytes) const {
    const std::vector<char> datagram(bytes, mark);
    CHECK(::sendto(number_,
                   datagram.data(),
                   datagram.size(),
                   0,
                   reinterpret_cast<const sockaddr*>(&to.address_),
                   to.length_) == static_cast<ssize_t>(bytes));
  }

  // The first letters of datagrams up to the one with the last mark.
  [[nodiscard]] std::string marks_until(char last) const {
    constexpr int kLongest_ms = 60'000;
    std::string marks;
    char mark = 0;
    pollfd wait{number_, POLLIN, 0};
    while (mark != last && ::poll(&wait, 1, kLongest_ms) == 1 &&
           ::recv(number_, &mark, 1, MSG_DONTWAIT) == 1) {
      marks += mark;
    }
    return marks;
  }

 private:
  int number_;
  sockaddr_storage address_{};
  socklen_t length_ = 0;
};

}  // namespace

TEST_CASE("a socket takes datagrams of one size, from the addresses and ports that it was told") {
  for (const int family : {AF_INET, AF_INET6}) {
    CAPTURE(family);
    const LoopbackSocket receiver(family);
    if (receiver.number() < 0) {
      continue;  // no IPv6 here
    }
    const LoopbackSocket first(family);
    const LoopbackSocket second(family);
    const LoopbackSocket stranger(family);
    stranger.send(receiver, 'a');
    CHECK(receiver.marks_until('a') == "a");

    REQUIRE(
        drop_all_but(receiver.number(), family, kTakenBytes, {first.source(), second.source()}));
    stranger.send(receiver, 'b');
    first.send(receiver, 'c', kTakenBytes - 1);
    first.send(receiver, 'd', kTakenBytes + 1);
    first.send(receiver, 'e', 0);
    first.send(receiver, 'f');
    stranger.send(receiver, 'g');
    second.send(receiver, 'h');
    CHECK(receiver.marks_until('h') == "fh");
  }
}

TEST_CASE("each byte of the address and of the port of a sender counts") {
  for (const int family : {AF_INET, AF_INET6}) {
    CAPTURE(family);
    const LoopbackSocket receiver(family);
    if (receiver.number() < 0) {
      continue;
    }
    const LoopbackSocket sender(family);
    const LoopbackSocket other(family);
    for (std::size_t at = family == AF_INET ? 12 : 0; at < sender.source().size(); ++at) {
      CAPTURE(at);
      DatagramSource changed = sender.source();
      changed[at] ^= 0x80U;
      if (changed == other.source()) {
        continue;
      }
      REQUIRE(drop_all_but(receiver.number(), family, kTakenBytes, {changed, other.source()}));
      sender.send(receiver, 'a');
      other.send(receiver, 'b');
      CHECK(receiver.marks_until('b') == "b");
    }
  }
}

TEST_CASE("a filter has room for the ranks of a large run, and says so where it has not") {
  const LoopbackSocket receiver(AF_INET);
  const LoopbackSocket sender(AF_INET);
  std::vector<DatagramSource> sources(100);
  sources.push_back(sender.source());
  REQUIRE(drop_all_but(receiver.number(), AF_INET, kTakenBytes, sources));
  sender.send(receiver, 'a');
  CHECK(receiver.marks_until('a') == "a");
  sources.insert(sources.end(), 10'000, DatagramSource{});
  CHECK_FALSE(drop_all_but(receiver.number(), AF_INET, kTakenBytes, sources));
  sender.send(receiver, 'b');
  CHECK(receiver.marks_until('b') == "b");
}

}  // namespace tessera::engine
