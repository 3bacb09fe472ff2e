#include <cmath>

#include "tests/fuzz/harness.h"

#include "partitioner/base/errors.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/partition/partition.h"
#include "partitioner/plan/plan.h"

namespace tessera::tests {

namespace {

using namespace partitioner;  // NOLINT(google-build-using-namespace)

void check_layer(const Network& network, int index) {
  const Region whole = whole_map(network, index, 1);
  law(!whole.empty(), "every map has cells");
  const LayerSpec& layer = network.layer(index);
  for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
    law(layer.inputs[input] < index, "a layer reads layers before it");
    const Region required = required_input(network, index, input, whole);
    const Region input_map = whole_map(network, layer.inputs[input], 1);
    law(contains({.images = input_map.images,
                  .channels = input_map.channels,
                  .rows = required.rows,
                  .cols = required.cols},
                 required),
        "only rows and columns reach outside a map");
  }
  law(multiply_adds(network, index, whole) >= 0, "work is not negative");
}

}  // namespace

bool fuzz_cfg(Bytes bytes) {
  try {
    const ModelFile model = parse_model(text_of(bytes), "fuzz.cfg");
    for (int layer = 0; layer < model.network.size(); ++layer) {
      check_layer(model.network, layer);
    }
    if (!depends_on_length(model.training) || model.training.max_batches > 0) {
      for (const Index step : {1, 2, 1000, 1'000'000}) {
        (void)learning_rate(model.training, step);
      }
    }
    if (model.network.size() <= 64) {
      const Partition partition = single_tile(model.network);
      law(check(model.network, make_plan(model.network, partition, 2)).empty(),
          "one tile has a plan without faults");
    }
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
