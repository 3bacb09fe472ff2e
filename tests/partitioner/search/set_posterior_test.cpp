#include "partitioner/search/set_posterior.h"

#include <cmath>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

PosteriorOptions no_doubt() {
  return {.common = 0.3, .error = 0.2, .noise = 0.1, .times = {1}, .weights = {1}};
}

// Variances before: 0.09 + 0.02 + 0.02 of each, 0.09 in common.
TEST_CASE("a trial changes what is known of its set and of another as worked out by hand") {
  SetPosterior posterior({{0}, {1}}, {std::log(2.0), 0}, no_doubt());
  CHECK(posterior.of(0).mean == doctest::Approx(std::log(2.0)));
  CHECK(posterior.of(0).variance == doctest::Approx(0.13));
  CHECK(posterior.ratio(0, 1).variance == doctest::Approx(0.08));
  CHECK(posterior.learnt(0, 1, 0) == doctest::Approx(0.04 * 0.04 / 0.14));

  posterior.observe(0, std::log(2.0) + 0.28, 0);  // v = 0.13 + 0.01
  CHECK(posterior.of(0).mean == doctest::Approx(std::log(2.0) + 0.26));
  CHECK(posterior.of(0).variance == doctest::Approx(0.13 - 0.13 * 0.13 / 0.14));
  CHECK(posterior.of(1).mean == doctest::Approx(0.18));
  CHECK(posterior.of(1).variance == doctest::Approx(0.13 - 0.09 * 0.09 / 0.14));
  CHECK(posterior.ratio(0, 1).mean == doctest::Approx(std::log(2.0) + 0.08));
  CHECK(posterior.ratio(0, 1).variance == doctest::Approx(0.08 - 0.04 * 0.04 / 0.14));
}

TEST_CASE("what a trial says that it may be off counts beside the noise of all trials") {
  SetPosterior posterior({{0}}, {0}, no_doubt());
  posterior.observe(0, 0.32, std::sqrt(0.02));  // v = 0.13 + 0.01 + 0.02
  CHECK(posterior.of(0).mean == doctest::Approx(0.26));
}

// Variances: 0.09 in common, 0.04 of several devices, 0.02 of the set, 0.02 of its devices.
TEST_CASE("sets with devices in common are off together") {
  SetPosterior posterior({{0, 1}, {0}, {2}, {1, 2}}, {0, 0, 0, 0}, no_doubt());
  posterior.observe(0, 0.18, 0);  // v = 0.17 + 0.01
  CHECK(posterior.of(0).mean == doctest::Approx(0.17));
  CHECK(posterior.of(1).mean == doctest::Approx(0.09 + 0.02 / std::sqrt(2.0)));
  CHECK(posterior.of(2).mean == doctest::Approx(0.09));
  CHECK(posterior.of(3).mean == doctest::Approx(0.09 + 0.04 + 0.01));
}

TEST_CASE("trials that contradict each other are noisy, and wrong predictions are doubted") {
  const std::vector<std::vector<int>> sets = {{0}, {1}, {2}};
  SetPosterior noisy(sets, {0, 0, 0}, {});
  SetPosterior quiet(sets, {0, 0, 0}, {});
  for (int i = 0; i < 4; ++i) {
    noisy.observe(0, i % 2 == 0 ? 0.15 : -0.15, 0);
    quiet.observe(0, 0, 0);
  }
  CHECK(noisy.of(0).variance > 4 * quiet.of(0).variance);

  SetPosterior wrong(sets, {0, 0, 0}, {});
  SetPosterior right(sets, {0, 0, 0}, {});
  wrong.observe(0, 0.4, 0);
  wrong.observe(1, -0.4, 0);
  right.observe(0, 0, 0);
  right.observe(1, 0, 0);
  CHECK(wrong.ratio(0, 2).variance > 4 * right.ratio(0, 2).variance);
}

TEST_CASE("the weights of hypotheses add up to 1, and their mixture is what is known") {
  SetPosterior posterior({{0}, {0, 1}}, {0, 0.5}, {});
  posterior.observe(0, 0.1, 0);
  double weight = 0;
  double mean = 0;
  for (const WeightedEstimate& each : posterior.ratios(1, 0)) {
    weight += each.weight;
    mean += each.weight * each.estimate.mean;
  }
  CHECK(weight == doctest::Approx(1).epsilon(0.005));
  CHECK(mean == doctest::Approx(posterior.ratio(1, 0).mean).epsilon(0.005));
}

}  // namespace
