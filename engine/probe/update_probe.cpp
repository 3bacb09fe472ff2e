#include "engine/probe/update_probe.h"

#include <cmath>

#include "engine/probe/cold_array.h"
#include "engine/probe/repeated_timing.h"
#include "engine/train/optimizer.h"

namespace tessera::engine {

double measure_updated_weights_per_s(double allowed_s) {
  // Values, gradients and what is remembered of them together are more than a cache holds.
  const auto side = static_cast<Index>(std::sqrt(static_cast<double>(cold_elements() / 2)));
  partitioner::Network network;
  network.image = {side, 1, 1};
  partitioner::Connected layer;
  layer.outputs = side;
  add_layer(network, layer, {partitioner::kImage});
  const partitioner::Plan plan =
      make_plan(network, make_partition(network, partitioner::Shorthand{}), 1);
  const Communicator alone = Communicator::self();
  ParameterSet<float> parameters(network, plan, alone, true);
  parameters.initialize(1);
  Optimizer<float> optimizer({}, parameters, 0);
  Index step = 0;
  const double seconds = median_seconds(allowed_s, [&] {
    parameters.clear_gradients();
    parameters.begin_weight_gradient(0);
    optimizer.update(parameters, ++step);
  });
  return static_cast<double>(side * side) / seconds;
}

}  // namespace tessera::engine
