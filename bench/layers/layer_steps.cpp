// Times the last layer of a small network, a few steps at a time, for a script that measures
// another program in between: each line of the standard input is a number of steps, and is answered
// with a line of their seconds: forward and backward of each step.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <string>
#include <vector>

#include "engine/base/random.h"
#include "engine/execution/execution.h"
#include "engine/ops/loops/threads.h"
#include "engine/ops/rearrange/rearrange.h"
#include "partitioner/base/errors.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/partition/kernels.h"

using namespace tessera;          // NOLINT(google-build-using-namespace): a program of this project
using namespace tessera::engine;  // NOLINT(google-build-using-namespace): the same

namespace {

struct Options {
  std::filesystem::path model;
  Index batch = 1;
  int threads = 1;
  bool image_gradient = false;
};

// Numbers from -1 to 1, laid out like `view`.
Tensor<float> random_like(const View<float>& view, std::uint64_t seed) {
  Tensor<float> tensor(view.region);
  std::uint64_t place = 0;
  for (float& value : tensor.values().span()) {
    value = static_cast<float>(2 * random_uniform(seed, place++) - 1);
  }
  return tensor;
}

void fill(const Tensor<float>& from, const View<float>& to) {
  copy_cells<float>({}, 1, false, from.view(), to.region, to);
}

void set_parameters(ParameterSet<float>& parameters) {
  std::uint64_t seed = 7;
  for (Parameter<float>& parameter : parameters.all()) {
    const bool variance = parameter.plan->kind == partitioner::ParameterKind::Variance;
    ++seed;
    std::uint64_t place = 0;
    for (float& value : parameter.values.span()) {
      const double number = random_uniform(seed, place++);
      value = static_cast<float>(variance ? 1 + number : 0.2 * number - 0.1);
    }
  }
}

void answer(const Options& options) {
  set_threads(options.threads);
  const partitioner::Network network = partitioner::read_model(options.model).network;
  partitioner::Partition partition = partitioner::single_tile(network);
  partition.kernels = choose_kernels(network, partitioner::KernelRule::Usual);
  const partitioner::Plan plan = make_plan(network, partition, options.batch);
  const Communicator communicator;
  Execution<float> execution(
      network, plan, communicator, {.image_gradient = options.image_gradient});
  set_parameters(execution.parameters());
  const Tensor<float> image = random_like(execution.image(), 1);
  const Tensor<float> gradient = random_like(execution.output_gradient(), 2);
  Pass pass;
  pass.ends_step = true;
  const auto step = [&] {
    fill(image, execution.image());
    execution.forward(pass);
    execution.clear_output_gradient();
    fill(gradient, execution.output_gradient());
    execution.backward(pass);
    execution.finish_gradients(pass);
    return execution.take_computing_times().back();
  };
  (void)step();
  for (int steps = 0; std::cin >> steps;) {
    for (int i = 0; i < steps; ++i) {
      const partitioner::PassSeconds took = step();
      fmt::print("{:.9f} {:.9f} ", took.forward_s, took.backward_s + took.weights_s);
    }
    fmt::print("\n");
    (void)std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("times the last layer of a network, as many steps as each line of the input says");
  app.add_option("MODEL", options.model)->required();
  app.add_option("--batch", options.batch);
  app.add_option("--threads", options.threads);
  app.add_flag("--image-gradient",
               options.image_gradient,
               "the first layer computes the gradient of its input, as others do");
  CLI11_PARSE(app, argc, argv);
  try {
    answer(options);
  } catch (const InputError& error) {
    fmt::print(stderr, "layer_steps: {}\n", error.what());
    return 2;
  }
  return 0;
}
