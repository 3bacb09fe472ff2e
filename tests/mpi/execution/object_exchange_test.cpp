// Objects of a step that is made of several passes.

#include <cmath>
#include <vector>

#include "tests/support/cuts.h"
#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "engine/execution/execution.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::Execution;
using partitioner::kImage;
using partitioner::Network;

constexpr Index kImages = 4;

// Without batch normalisation, whose statistics are of a pass.
Network two_scales() {
  Network network;
  network.image = {3, 32, 32};
  add_layer(network,
            partitioner::Convolution{.filters = 4, .size = 3, .stride = 4, .padding = 1},
            {kImage});
  const partitioner::YoloxHead head{.classes = 2, .l1 = true};
  add_layer(network,
            partitioner::Convolution{.filters = 7, .activation = partitioner::Activation::Linear},
            {0});
  add_layer(network, head, {1});
  add_layer(network,
            partitioner::Convolution{
                .filters = 7, .stride = 2, .activation = partitioner::Activation::Linear},
            {0});
  add_layer(network, head, {3});
  return network;
}

struct Step {
  std::vector<double> gradients;  // on rank 0
  double loss = 0;
};

// `images` of each pass, which has objects on its first image alone, and none in the first pass.
Step step_of(const Network& network, const Communicator& world, Index passes) {
  const Index images = kImages / passes;
  const partitioner::Plan plan =
      make_plan(network, tests::fused(network, world.size(), tests::grid(world.size())), images);
  Execution<double> execution(network, plan, world, {});
  auto& parameters = execution.parameters();
  parameters.initialize(7);
  parameters.clear_gradients();
  std::vector<double> pictures;
  tests::Draw draw(11);
  for (Index i = 0; i < network.image.volume() * kImages; ++i) {
    pictures.push_back(static_cast<double>(draw.between(0, 1000)) / 1000);
  }
  engine::LossSum total;
  engine::Pass pass;
  for (pass.number = 0; pass.number < passes; ++pass.number) {
    const auto begin = pictures.begin() + pass.number * images * network.image.volume();
    execution.scatter_image({begin, begin + images * network.image.volume()});
    engine::Targets targets;
    for (Index n = pass.number * images; n < (pass.number + 1) * images; ++n) {
      engine::ImageTargets& of_image = targets.emplace_back(engine::ImageTargets{}).value();
      for (Index object = 0; object < n - 1; ++object) {
        const double centre = 0.3 + 0.2 * static_cast<double>(object);
        of_image.boxes.push_back({static_cast<int>(n % 2), centre, 0.4, 0.3, 0.4});
      }
    }
    pass.targets = &targets;
    pass.ends_step = pass.number + 1 == passes;
    execution.forward(pass);
    total.add(execution.exchange_loss(pass).loss);
    execution.clear_output_gradient();
    execution.backward(pass);
  }
  pass.number = passes - 1;
  execution.finish_gradients(pass);
  Step step{{}, total.mean(1)};
  for (const auto& parameter : parameters.all()) {
    const auto whole = parameters.gather(parameter, parameter.gradient.data());
    step.gradients.insert(step.gradients.end(), whole.begin(), whole.end());
  }
  return step;
}

}  // namespace

TEST_CASE("a loss over the objects of a step is divided by all of them, in however many passes") {
  const Communicator world = Communicator::world();
  const Network network = two_scales();
  const Step at_once = step_of(network, world, 1);
  for (const Index passes : {2, 4}) {
    const Step step = step_of(network, world, passes);
    CHECK(step.loss == doctest::Approx(at_once.loss).epsilon(1e-12));
    REQUIRE(step.gradients.size() == at_once.gradients.size());
    double worst = 0;
    double largest = 0;
    for (std::size_t i = 0; i < step.gradients.size(); ++i) {
      worst = std::max(worst, std::abs(step.gradients[i] - at_once.gradients[i]));
      largest = std::max(largest, std::abs(at_once.gradients[i]));
    }
    CHECK(worst <= 1e-12 * largest);
  }
}
