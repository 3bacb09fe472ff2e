#include "engine/execution/execution.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/random_tensors.h"
#include <doctest/doctest.h>
#include <omp.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchNormMode;
using engine::Communicator;
using engine::Execution;
using engine::ExecutionOptions;
using engine::NamedTensors;
using engine::Pass;
using partitioner::Activation;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Plan;
using tests::chain;
using tests::convolution;
using tests::normalized;

Network classifier() {
  return chain({3, 8, 7},
               {normalized(convolution(6, 3)),
                partitioner::Dropout{0.5},
                convolution(4, 3, 2),
                partitioner::AvgPool{},
                partitioner::Connected{5, false, Activation::Linear},
                partitioner::Softmax{}});
}

// One tile on this rank alone, with values in it.
template <class T>
struct Alone {
  Network network;
  Plan plan;
  Communicator communicator;
  Execution<T> execution;

  explicit Alone(const Network& of, const ExecutionOptions& options = {})
      : network(of),
        plan(make_plan(network, single_tile(network), 4)),
        execution(network, plan, communicator, options) {
    execution.parameters().initialize(5);
    const std::vector<double> values = tests::random_tensors(network, 4, 6).at("input").values;
    execution.scatter_image(std::vector<T>(values.begin(), values.end()));
  }

  [[nodiscard]] std::vector<T> output(const Pass& pass) {
    execution.forward(pass);
    return execution.gather_map(network.size() - 1);
  }
};

std::vector<double> statistics(Execution<double>& execution) {
  std::vector<double> all;
  for (const auto& parameter : execution.parameters().all()) {
    if (!partitioner::is_learnt(*parameter.plan)) {
      all.insert(all.end(), parameter.values.span().begin(), parameter.values.span().end());
    }
  }
  return all;
}

TEST_CASE("a rank alone reads the whole image and sends nothing") {
  Alone<float> alone(classifier());
  CHECK(alone.execution.image_region(0) == whole_map(alone.network, kImage, 4));
  CHECK(alone.execution.memory().messages == 0);
}

TEST_CASE("running statistics move while training, and neither in inference nor when frozen") {
  Alone<double> alone(classifier());
  const std::vector<double> before = statistics(alone.execution);
  Pass pass;
  pass.training = false;
  alone.execution.forward(pass);
  CHECK(statistics(alone.execution) == before);
  pass.training = true;
  pass.batch_norm = BatchNormMode::Frozen;
  alone.execution.forward(pass);
  CHECK(statistics(alone.execution) == before);
  pass.batch_norm = BatchNormMode::Sync;
  alone.execution.forward(pass);
  CHECK(statistics(alone.execution) != before);
}

TEST_CASE("inference drops nothing and gives the same output every time") {
  Alone<double> alone(classifier());
  Pass pass;
  pass.training = false;
  const std::vector<double> first = alone.output(pass);
  pass.step = 1;
  pass.seed = 2;
  CHECK(alone.output(pass) == first);
  pass.training = true;
  CHECK(alone.output(pass) != first);
}

TEST_CASE("dropout is drawn anew for each step and each image of a step") {
  Alone<double> alone(chain({2, 9, 9}, {partitioner::Dropout{0.5}}));
  Pass pass;
  const std::vector<double> first = alone.output(pass);
  CHECK(alone.output(pass) == first);
  pass.first_image = 4;
  CHECK(alone.output(pass) != first);
  pass.first_image = 0;
  pass.step = 1;
  CHECK(alone.output(pass) != first);
}

TEST_CASE("dropout keeps about the share of cells that it says, and the mean") {
  Network network = chain({20, 20, 20}, {partitioner::Dropout{0.3}});
  Alone<double> alone(network);
  const std::vector<double> ones(static_cast<std::size_t>(4 * network.image.volume()), 1.0);
  alone.execution.scatter_image(ones);
  const std::vector<double> out = alone.output({});
  double kept = 0;
  for (const double value : out) {
    CHECK((value == 0 || value == doctest::Approx(1 / 0.7)));
    kept += value == 0 ? 0 : 1;
  }
  // 32000 draws: four deviations are 0.01.
  CHECK(kept / static_cast<double>(out.size()) == doctest::Approx(0.7).epsilon(0.015));
}

TEST_CASE("an execution that does not train keeps no gradients and computes the same") {
  Alone<float> trains(classifier());
  Alone<float> infers(classifier(), {.training = false});
  Pass pass;
  pass.training = false;
  CHECK(trains.output(pass) == infers.output(pass));
  CHECK(infers.execution.memory().gradients == 0);
  CHECK(infers.execution.memory().activations < trains.execution.memory().activations);
}

TEST_CASE("one cell per channel has no unbiased variance: the biased one is taken") {
  const Network network = chain({3, 1, 1}, {normalized(convolution(4, 1))});
  NamedTensors in = tests::random_tensors(network, 1, 8);
  const NamedTensors out = tests::on_one_tile<double>(network, in);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(out.at("layers.0.bn.variance").values[k] ==
          doctest::Approx(0.9 * in.at("layers.0.bn.variance").values[k]));
  }
}

TEST_CASE("a network has the same bits with 1, 2 and 3 threads") {
  const int before = omp_get_max_threads();
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, 1, {.connected = false});
    const NamedTensors in = tests::random_tensors(random.network, random.batch, seed);
    omp_set_num_threads(1);
    const NamedTensors expected = tests::on_one_tile<float>(random.network, in);
    for (const int threads : {2, 3}) {
      omp_set_num_threads(threads);
      const std::string wrong =
          tests::differences(tests::on_one_tile<float>(random.network, in), expected, {});
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ", ", threads, " threads:\n", wrong);
    }
  }
  omp_set_num_threads(before);
}

TEST_CASE("a tensor that is missing or of another shape is refused by its name") {
  const Network network = classifier();
  NamedTensors in = tests::random_tensors(network, 2, 1);
  in.erase("layers.0.bn.scale");
  CHECK_THROWS_WITH_AS(
      tests::on_one_tile<double>(network, in), doctest::Contains("layers.0.bn.scale"), InputError);
  in = tests::random_tensors(network, 2, 1);
  in.at("layers.2.weight").shape[0] = 5;
  CHECK_THROWS_WITH_AS(
      tests::on_one_tile<double>(network, in), doctest::Contains("layers.2.weight"), InputError);
  in = tests::random_tensors(network, 2, 1);
  in.erase("input");
  CHECK_THROWS_WITH_AS(
      tests::on_one_tile<double>(network, in), doctest::Contains("input"), InputError);
}

}  // namespace
