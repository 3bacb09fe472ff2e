#include "engine/probe/update_probe.h"

#include "engine/probe/repeated_timing.h"
#include "engine/train/optimizer.h"

namespace tessera::engine {

double measure_updated_weights_per_s(double allowed_s) {
  constexpr Index kSide = 1024;
  partitioner::Network network;
  network.image = {kSide, 1, 1};
  partitioner::Connected layer;
  layer.outputs = kSide;
  add_layer(network, layer, {partitioner::kImage});
  const partitioner::Plan plan =
      make_plan(network, make_partition(network, partitioner::Shorthand{}), 1);
  const Communicator alone = Communicator::self();
  ParameterSet<float> parameters(network, plan, alone, true);
  parameters.initialize(1);
  Optimizer<float> optimizer({}, parameters, 0);
  Index step = 0;
  const double seconds = median_seconds(allowed_s, [&] { optimizer.update(parameters, ++step); });
  return static_cast<double>(kSide * kSide) / seconds;
}

}  // namespace tessera::engine
