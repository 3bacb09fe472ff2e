// What becomes of the parts of a loss.

#include "engine/base/loss_sum.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::LossSum;

TEST_CASE("a loss without objects is the sum over images, bit for bit, however many there are") {
  for (int i = 1; i < 1000; ++i) {
    const LossSum loss{.sum = 0.1 * i, .means = {{.sum = 0.3 * i, .count = 7}}};
    for (const double images : {1., 3., 7., 49., 0.5}) {
      CHECK(loss.sum_over(images) == loss.total());
    }
  }
}

TEST_CASE(
    "what is divided by cells with an object has one mean, in however many passes they came") {
  LossSum loss{.sum = 8, .by_objects = {.sum = 6, .count = 0}};
  CHECK(loss.mean(0.25) == 2 + 6);  // none: the sum counts as it is
  loss.add({.by_objects = {.sum = 6, .count = 4}});
  CHECK(loss.mean(0.25) == 2 + 3);
  CHECK(loss.sum_over(4) == 8 + 3 * 4);
  CHECK(loss.sum_over(4) * 0.25 == loss.mean(0.25));
}
