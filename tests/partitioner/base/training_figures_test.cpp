#include "partitioner/base/training_figures.h"

#include <cmath>

#include <doctest/doctest.h>

namespace tessera {

TEST_CASE("epochs are whole: one that ends within a step ends with it") {
  const double length = 60000.0 / 128;  // 468.75 steps
  for (Index epoch = 1; epoch <= 50; ++epoch) {
    const auto last = static_cast<Index>(std::ceil(static_cast<double>(epoch) * length));
    CHECK(epoch_number(last, static_cast<double>(last) / length) == epoch);
    CHECK(epoch_number(last + 1, static_cast<double>(last + 1) / length) == epoch + 1);
  }
  CHECK(epoch_number(300, 300 / length) == 1);
  CHECK(epoch_number(1, 1 / length) == 1);
}

TEST_CASE("epochs of whole steps, of one step, and of less than one") {
  CHECK(epoch_number(20, 1) == 1);
  CHECK(epoch_number(21, 1.05) == 2);
  CHECK(epoch_number(40, 2) == 2);
  CHECK(epoch_number(7, 7) == 7);
  CHECK(epoch_number(3, 7.5) == 7);
  CHECK(epoch_number(0, 0) == 1);
}

TEST_CASE("what was sent is said of the whole run, of a step and of the busiest rank") {
  const double mib = 1024.0 * 1024;
  CHECK(described(SentMessages{100, {100 * mib, 50 * mib, 50 * mib}}) ==
        "200.0 MiB in 100 steps by 3 ranks: 2.0 MiB per step, at most 1.0 MiB of it by one rank");
  CHECK(sum_of_bytes({100, {3, 4}}) == 7);
  CHECK(described(SentMessages{100, {0}}).empty());
  CHECK(described(SentMessages{}).empty());
}

}  // namespace tessera
