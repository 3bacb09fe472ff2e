// The loss of a network and its gradients, on all ranks together.

#pragma once

#include <vector>

#include "tests/support/random_tensors.h"

#include "engine/execution/execution.h"

namespace tessera::tests {

// `in` as random_tensors() makes it, without need of "output_gradient". The result, on rank 0:
// "loss", "input_gradient" and the gradient of each learnt parameter. `images` of each rank, where
// these are not as the partition says.
[[nodiscard]] inline NamedTensors loss_gradients(const partitioner::Network& network,
                                                 const partitioner::Partition& partition,
                                                 const NamedTensors& in,
                                                 const engine::Targets& targets,
                                                 const engine::Communicator& communicator,
                                                 const std::vector<Index>& images = {}) {
  const auto batch = static_cast<Index>(targets.size());
  const Index places = images.empty() ? batch : partition.groups.front().images.boundaries.back();
  const partitioner::Plan plan = make_plan(network, partition, places);
  engine::Execution<double> execution(network, plan, communicator, {.image_gradient = true});
  if (!images.empty()) {
    execution.set_images(std::vector<Index>(images.size()));  // others before
    execution.set_images(images);
  }
  const bool root = communicator.rank() == 0;
  const auto whole = [&](const std::string& name) {
    return root ? in.at(name).values : std::vector<double>{};
  };
  auto& parameters = execution.parameters();
  for (auto& parameter : parameters.all()) {
    parameters.scatter(
        parameter, whole(engine::parameter_name(*parameter.plan)), parameter.values.data());
  }
  execution.scatter_image(whole("input"));
  engine::Pass pass;
  pass.dropout = false;
  pass.targets = &targets;
  pass.loss_scale = 1 / static_cast<double>(batch);
  pass.ends_step = true;
  execution.forward(pass);
  NamedTensors out;
  out["loss"] = {{1}, {execution.exchange_loss(pass).loss.total() * pass.loss_scale}};
  execution.clear_output_gradient();
  execution.backward(pass);
  execution.finish_gradients(pass);
  out["input_gradient"] = {in.at("input").shape, execution.gather_gradient(partitioner::kImage)};
  for (const auto& parameter : parameters.all()) {
    if (is_learnt(parameter.plan->kind)) {
      out[engine::parameter_name(*parameter.plan)] = {
          engine::parameter_shape(network, *parameter.plan),
          parameters.gather(parameter, parameter.gradient.data())};
    }
  }
  return root ? out : NamedTensors{};
}

// Classes from 0 on, in turn, but for the last image, where there are several: nothing is known of
// it.
[[nodiscard]] inline engine::Targets some_targets(Index batch, Index classes) {
  engine::Targets targets;
  for (Index n = 0; n < batch; ++n) {
    targets.push_back(engine::ImageTargets{.label = static_cast<int>(n % classes)});
  }
  if (batch > 1) {
    targets.back().reset();
  }
  return targets;
}

// Of the layers that losses are taken of.
[[nodiscard]] inline Index fewest_outputs(const partitioner::Network& network) {
  Index fewest = network.shape(output_layer(network)).volume();
  for (const partitioner::Loss& loss : losses(network)) {
    fewest = std::min(fewest, network.shape(loss.layer).volume());
  }
  return fewest;
}

}  // namespace tessera::tests
