// Three updates of two weights and a bias against numbers of tests/golden/optimizer_numbers.py,
// which has the formulas of PyTorch's SGD, Adam and AdamW.

#include "engine/train/optimizer.h"

#include <algorithm>
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "engine/execution/execution.h"
#include "engine/ops/parameters/update.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::Optimizer;
using engine::Parameter;
using partitioner::ParameterKind;
using partitioner::TrainingOptions;

constexpr std::array<std::array<double, 2>, 3> kGradients{{{0.5, -1}, {0.25, 0.75}, {-2, 0.125}}};
constexpr std::array<double, 2> kStart{1, -2};
constexpr double kRounding = 1e-14;  // of a few operations on numbers of about 1

TrainingOptions momentum_options() {
  TrainingOptions options;
  options.learning_rate = 0.1;
  options.momentum = 0.9;
  options.decay = 0.01;
  return options;
}

TrainingOptions adam_options() {
  TrainingOptions options = momentum_options();
  options.adam = true;
  options.adam_beta1 = 0.9;
  options.adam_beta2 = 0.999;
  options.adam_epsilon = 1e-8;
  return options;
}

// The weights and the biases of a layer of two outputs with one input, after a step for each of the
// gradients, which are those of both.
struct Learnt {
  std::array<double, 2> weights{};
  std::array<double, 2> biases{};
};

Learnt learn(const TrainingOptions& options, const partitioner::LearningRules& rules = {}) {
  partitioner::Network network;
  network.image = {1, 1, 1};
  add_layer(network,
            partitioner::Connected{.outputs = 2, .batch_normalize = rules.norm_only},
            {partitioner::kImage});
  network.layers.front().learning = rules;
  const partitioner::Plan plan = make_plan(network, single_tile(network), 1);
  const Communicator alone = Communicator::self();
  engine::ParameterSet<double> parameters(network, plan, alone, true);
  Optimizer<double> optimizer(options, parameters, 0);
  for (Parameter<double>& parameter : parameters.all()) {
    std::copy(kStart.begin(), kStart.end(), parameter.values.data());
  }
  for (std::size_t step = 0; step < kGradients.size(); ++step) {
    for (Parameter<double>& parameter : parameters.all()) {
      if (parameter.gradient.size() > 0) {
        std::copy(kGradients[step].begin(), kGradients[step].end(), parameter.gradient.data());
      }
    }
    optimizer.update(parameters, static_cast<Index>(step) + 1);
  }
  Learnt learnt;
  for (const Parameter<double>& parameter : parameters.all()) {
    if (parameter.plan->kind == ParameterKind::Weight) {
      std::copy_n(parameter.values.data(), 2, learnt.weights.begin());
    } else if (parameter.plan->kind == ParameterKind::Bias) {
      std::copy_n(parameter.values.data(), 2, learnt.biases.begin());
    }
  }
  return learnt;
}

void expect_close(const std::array<double, 2>& values, const std::array<double, 2>& expected) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i] == doctest::Approx(expected[i]).epsilon(kRounding));
  }
}

TEST_CASE("momentum and weight decay are PyTorch's, and biases do not decay") {
  const Learnt learnt = learn(momentum_options());
  expect_close(learnt.weights, {1.011609749, -1.873094498});
  expect_close(learnt.biases, {1.017, -1.884});
}

// Four steps of PyTorch's SGD with nesterov=True, in which the rate changes; on a weight, which
// decays.
TEST_CASE("Nesterov's momentum is PyTorch's, also where the rate changes") {
  constexpr std::array<double, 2> kBegin{0.5, -1};
  constexpr std::array<std::array<double, 2>, 4> kSteps{
      {{0.39229682477920974, -0.22356401839813858},
       {-1.2050371108761633, 1.0444635443343404},
       {0.5731067383666415, 0.5409474150400865},
       {-1.0426788307393724, 1.31861730540547}}};
  constexpr std::array<double, 4> kRates{0, 0.01, 0.02, 0.015};
  constexpr std::array<std::array<double, 2>, 4> kDecayed{
      {{0.5, -1},
       {0.5197113258259355, -1.0180203887933275},
       {0.5117176137437254, -1.0522024042074352},
       {0.5437713618077088, -1.1055449454663369}}};
  constexpr std::array<std::array<double, 2>, 4> kPlain{
      {{0.5, -1},
       {0.5197181008259355, -1.0180339387933275},
       {0.5117419582589161, -1.0522506865948222},
       {0.5438113496701997, -1.1056247944618458}}};
  for (const double decay : {0.0005, 0.0}) {
    std::array<double, 2> values = kBegin;
    std::array<double, 2> velocity{};
    for (std::size_t step = 0; step < kSteps.size(); ++step) {
      const engine::MomentumRule<double> rule{kRates[step], 0.9, decay, true};
      update_by(rule, 2, kSteps[step].data(), velocity.data(), values.data());
      expect_close(values, (decay > 0 ? kDecayed : kPlain)[step]);
    }
  }
  TrainingOptions options = momentum_options();
  options.nesterov = true;
  const Learnt learnt = learn(options);
  std::array<double, 2> biases = kStart;
  std::array<double, 2> velocity{};
  for (const std::array<double, 2>& gradient : kGradients) {
    update_by(engine::MomentumRule<double>{0.1, 0.9, 0, true},
              2,
              gradient.data(),
              velocity.data(),
              biases.data());
  }
  expect_close(learnt.biases, biases);
  CHECK(learnt.biases != learn(momentum_options()).biases);
}

TEST_CASE("Adam with weight decay is PyTorch's, and biases do not decay") {
  const Learnt learnt = learn(adam_options());
  expect_close(learnt.weights, {0.848039213666712, -1.88575034478888});
  expect_close(learnt.biases, {0.848928245488843, -1.89055857254092});
}

TEST_CASE("AdamW is PyTorch's, and biases do not decay") {
  TrainingOptions options = adam_options();
  options.decoupled_decay = true;
  const Learnt learnt = learn(options);
  expect_close(learnt.weights, {0.846224362446367, -1.88477340303956});
  expect_close(learnt.biases, {0.848928245488843, -1.89055857254092});
}

TEST_CASE("a layer's factor is one of its rate") {
  TrainingOptions options = momentum_options();
  const Learnt expected = learn(options);
  options.learning_rate *= 4;
  const Learnt learnt = learn(options, {.rate_factor = 0.25});
  expect_close(learnt.weights, expected.weights);
  expect_close(learnt.biases, expected.biases);
  CHECK(learn(momentum_options(), {.rate_factor = 0}).weights == kStart);
}

TEST_CASE("a layer that is held for some steps learns as if the others were the first") {
  for (const TrainingOptions& options : {momentum_options(), adam_options()}) {
    CHECK(learn(options, {.steps_held = 3}).weights == kStart);
    CHECK(learn(options, {.steps_held = 3}).biases == kStart);
    CHECK(learn(options, {.steps_held = 2}).weights != kStart);
  }
  TrainingOptions plain = momentum_options();
  plain.decay = 0;
  const Learnt last = learn(plain, {.steps_held = 2});
  for (std::size_t i = 0; i < kStart.size(); ++i) {
    CHECK(last.biases[i] == doctest::Approx(kStart[i] - 0.1 * kGradients[2][i]));
  }
}

TEST_CASE("of a layer whose normalisation alone learns weights do not change, and its shift does") {
  const Learnt learnt = learn(momentum_options(), {.norm_only = true});
  CHECK(learnt.weights == kStart);
  expect_close(learnt.biases, learn(momentum_options()).biases);
}

TEST_CASE("without momentum and decay a step is the gradient times the rate of that step") {
  TrainingOptions options = momentum_options();
  options.momentum = 0;
  options.decay = 0;
  options.policy = partitioner::RatePolicy::Steps;
  options.steps = {2};
  options.scales = {0.5};
  double expected = kStart[0];
  for (std::size_t step = 0; step < kGradients.size(); ++step) {
    expected -= learning_rate(options, static_cast<Index>(step) + 1) * kGradients[step][0];
  }
  CHECK(learning_rate(options, 1) != learning_rate(options, 3));
  CHECK(learn(options).weights[0] == doctest::Approx(expected).epsilon(kRounding));
}

// Values of YOLOX's own average (yolox/utils/ema.py, Megvii) after each of five updates of a weight
// and a running mean.
TEST_CASE("averages over steps are YOLOX's, of running statistics, too") {
  constexpr std::array<double, 2> kWeights{0.6613521715704522, 0.2669240982925188};
  struct Update {
    std::array<double, 2> weight;
    double mean;
    std::array<double, 2> average_weight;
    double average_mean;
  };
  constexpr std::array<Update, 5> kUpdates{{{{0.5585913139873134, 0.21061881842713995},
                                             0.05,
                                             {0.5586426712996212, 0.21064695840096495},
                                             0.04997501124770867},
                                            {{0.5164717983118521, 0.1595488184988203},
                                             0.15,
                                             {0.5165139396764712, 0.15959988088364685},
                                             0.14990004500207404},
                                            {{0.5490219525476077, 0.11163432687684177},
                                             0.3,
                                             {0.5489732368266298, 0.11170620689469489},
                                             0.2997750638417839},
                                            {{0.5600474419365542, -0.11426663347975727},
                                             0.5,
                                             {0.5600253200852416, -0.11381522974234982},
                                             0.4996000303206606},
                                            {{0.5886167178991603, -0.045285145613731634},
                                             0.75,
                                             {0.5885453429561776, -0.045456222623646125},
                                             0.7493749069676461}}};
  TrainingOptions options;
  options.ema_decay = 0.9998;
  partitioner::Network network;
  network.image = {1, 1, 1};
  add_layer(network,
            partitioner::Connected{.outputs = 2, .batch_normalize = true},
            {partitioner::kImage});
  const partitioner::Plan plan = make_plan(network, single_tile(network), 1);
  engine::ParameterSet<double> parameters(network, plan, Communicator::self(), true);
  Optimizer<double> optimizer(options, parameters, 0);
  const auto of_kind = [&](ParameterKind kind) {
    const auto found = std::find_if(
        parameters.all().begin(), parameters.all().end(), [kind](const Parameter<double>& each) {
          return each.plan->kind == kind;
        });
    return static_cast<std::size_t>(found - parameters.all().begin());
  };
  const std::size_t weight = of_kind(ParameterKind::Weight);
  const std::size_t mean = of_kind(ParameterKind::Mean);
  std::copy_n(kWeights.begin(), 2, parameters.all()[weight].values.data());
  optimizer.begin_averages(parameters);
  for (std::size_t step = 0; step < kUpdates.size(); ++step) {
    const Update& update = kUpdates[step];
    std::copy_n(update.weight.begin(), 2, parameters.all()[weight].values.data());
    std::fill_n(parameters.all()[mean].values.data(), 2, update.mean);
    optimizer.average(parameters, static_cast<Index>(step) + 1);
    const auto& states = optimizer.states();
    expect_close({states[weight].average[0], states[weight].average[1]}, update.average_weight);
    expect_close({states[mean].average[0], states[mean].average[1]},
                 {update.average_mean, update.average_mean});
  }
}

TEST_CASE("the share of an average rises as YOLOX's, Darknet's does not") {
  TrainingOptions options;
  options.ema_decay = 0.9998;
  CHECK(ema_decay(options, 1) == doctest::Approx(0.0004997750458265429).epsilon(1e-12));
  CHECK(ema_decay(options, 2000) == doctest::Approx(0.631994134716792).epsilon(1e-12));
  CHECK(ema_decay(options, 100000) == doctest::Approx(0.9998).epsilon(1e-12));
  options.ema_rises = false;
  CHECK(ema_decay(options, 1) == 0.9998);
}

TEST_CASE("the optimizer remembers one number for each learnt element, Adam two, averages one") {
  partitioner::Network network;
  network.image = {1, 1, 1};
  add_layer(network, partitioner::Connected{.outputs = 2}, {partitioner::kImage});
  const partitioner::Plan plan = make_plan(network, single_tile(network), 1);
  const Communicator alone = Communicator::self();
  const engine::ParameterSet<double> parameters(network, plan, alone, true);
  const Index number = sizeof(double);
  CHECK(Optimizer<double>(momentum_options(), parameters, 0).bytes() == 4 * number);
  CHECK(Optimizer<double>(adam_options(), parameters, 0).bytes() == 8 * number);
  TrainingOptions averaging = adam_options();
  averaging.ema_decay = 0.9;
  CHECK(Optimizer<double>(averaging, parameters, 0).bytes() == 12 * number);
}

}  // namespace
