#include "engine/cluster/link_trial.h"

#include <future>

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

TEST_CASE("a link is measured by who has the token, and by nobody else") {
  LinkListener listener("127.0.0.1");
  const std::string token = new_token();
  CHECK(token.size() == kTokenBytes);
  auto served = std::async(std::launch::async, [&] { return listener.serve(token, 20); });
  // The wrong token gets no answer, and does not keep the right one out.
  CHECK_THROWS_AS((void)try_link("127.0.0.1", listener.port(), new_token(), 20), InputError);
  const LinkRates rates = try_link("127.0.0.1", listener.port(), token, 20);
  CHECK(rates.round_trip_s > 0);
  CHECK(rates.to_bytes_per_s > 0);
  CHECK(rates.from_bytes_per_s > 0);
  CHECK(served.get());
}

TEST_CASE("nobody listens on an address that this machine does not have") {
  CHECK_THROWS_AS(LinkListener("192.0.2.77"), InputError);
  CHECK_THROWS_AS(LinkListener("not an address"), InputError);
}

TEST_CASE("a connection that is refused says so") {
  int port = 0;
  {
    const LinkListener gone("127.0.0.1");
    port = gone.port();
  }
  CHECK_THROWS_WITH_AS(
      (void)try_link("127.0.0.1", port, new_token(), 5), "Connection refused", InputError);
}

}  // namespace tessera::engine
