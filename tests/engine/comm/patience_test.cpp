#include "engine/comm/patience.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Patience;
using engine::Pulse;

TEST_CASE("a pulse counts the time of waits, that in progress included, and nothing between them") {
  Pulse pulse;
  const std::int64_t start = Pulse::steady_ns();
  {
    Patience patience(&pulse);
    CHECK(pulse.waited_s() == 0);  // nothing to wait for yet
    patience.wait();
    patience.wait();
    const double during = pulse.waited_s();
    CHECK(during > 0);
    CHECK(pulse.waited_ns == 0);
    patience.renew();
    CHECK(pulse.waited_s() >= during);
    CHECK(pulse.waiting_since_ns == 0);
    const double between = pulse.waited_s();
    CHECK(pulse.waited_s() == between);
    patience.wait();
  }
  const double after = pulse.waited_s();
  CHECK(pulse.waited_s() == after);
  CHECK(after <= 1e-9 * static_cast<double>(Pulse::steady_ns() - start));
}

TEST_CASE("waits that nobody is told of are none of a pulse's") {
  Pulse pulse;
  Patience patience(nullptr);
  patience.wait();
  CHECK(pulse.waited_s() == 0);
}

}  // namespace
