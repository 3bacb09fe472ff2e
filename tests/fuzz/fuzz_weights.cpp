#include "tests/fuzz/fuzz_networks.h"
#include "tests/fuzz/harness.h"
#include "tests/support/darknet_weights.h"

#include "engine/files/darknet_weights.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

bool fuzz_weights(Bytes bytes) {
  if (bytes.empty()) {
    return false;
  }
  const bool allow_partial = bytes[0] % 2 == 1;
  const partitioner::NormRule norm{.epsilon = bytes[0] % 4 < 2 ? 1e-5 : 1e-14};
  const partitioner::Network network = fuzz_network();
  const std::string path = fuzz_file("fuzz.weights", bytes.subspan(1));
  try {
    const engine::DarknetWeights weights = read_darknet_weights(path, network, norm, allow_partial);
    law(weights.layers.size() == static_cast<std::size_t>(network.size()), "all layers are there");
    if (weights.layers_filled == network.size()) {
      const std::string copy = path + ".copy";
      engine::write_darknet_weights(copy, network, weights, norm);
      const engine::DarknetWeights again = read_darknet_weights(copy, network, norm);
      law(again.seen == weights.seen, "the count of images is the same after writing and reading");
    }
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
