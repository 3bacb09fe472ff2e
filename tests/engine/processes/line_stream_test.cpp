#include "engine/processes/line_stream.h"

#include <string>
#include <unistd.h>

#include <doctest/doctest.h>

#include "engine/processes/child_process.h"

namespace tessera::engine {

namespace {

void put(const Descriptor& end, const std::string& text) {
  REQUIRE(::write(end.number(), text.data(), text.size()) == std::ssize(text));
}

}  // namespace

TEST_CASE("lines come whole, in order, however they were cut on their way") {
  auto [mine, theirs] = socket_pair();
  LineStream stream(std::move(mine));
  CHECK(stream.receive().empty());
  put(theirs, "one\ntw");
  CHECK(stream.receive() == std::vector<std::string>{"one"});
  put(theirs, "o\n\nthree\nrest");
  CHECK(stream.receive() == std::vector<std::string>{"two", "", "three"});
  CHECK_FALSE(stream.is_over());
  theirs.close();
  CHECK(stream.receive().empty());
  CHECK(stream.is_over());
}

TEST_CASE("more than the other side takes at once is sent when it takes it") {
  auto [mine, theirs] = socket_pair();
  LineStream sender(std::move(mine));
  LineStream receiver(std::move(theirs));
  std::vector<std::string> sent;
  for (int i = 0; i < 200; ++i) {
    sent.push_back(std::string(10'000, static_cast<char>('a' + i % 26)));
    sender.send(sent.back());
  }
  CHECK(sender.wants_to_write());
  std::vector<std::string> received;
  while (received.size() < sent.size()) {
    sender.flush();
    for (std::string& line : receiver.receive()) {
      received.push_back(std::move(line));
    }
  }
  CHECK(received == sent);
  CHECK_FALSE(sender.wants_to_write());
}

TEST_CASE("sending to who has gone is an end, not a death") {
  auto [mine, theirs] = socket_pair();
  LineStream stream(std::move(mine));
  theirs.close();
  stream.send("nobody");
  CHECK(stream.is_over());
  stream.send("still nobody");
}

}  // namespace tessera::engine
