#include "engine/supervisor/connection.h"

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("this machine itself is reached by no interface") {
  CHECK(interface_towards("127.0.0.1").empty());
  CHECK(interface_towards("no-such-host.invalid").empty());
}

TEST_CASE("an interface that is not there has no carrier") {
  CHECK(has_carrier("lo"));
  CHECK(!has_carrier("no-such0"));
  CHECK(!has_carrier(""));
}

TEST_CASE("only what is there answers a ping") {
  const auto here = answers_ping("127.0.0.1");
  if (!here) {
    return;  // there is no ping
  }
  CHECK(*here);
  CHECK(answers_ping("no-such-host.invalid") == false);
}

}  // namespace tessera::engine
