#include "tests/fuzz/harness.h"

#ifdef TESSERA_HAS_ONNX

#include <algorithm>

#include "engine/onnx/import_model.h"
#include "engine/onnx/import_nodes.h"
#include "partitioner/base/errors.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::tests {

namespace {

using engine::ImportedModel;
using engine::ImportedParameters;
using engine::OnnxFile;
using engine::Translation;

// Of the weights as many are there as their shapes say.
void check_constant(const engine::Constant& constant) {
  const Index count = engine::volume_of(constant.shape);
  law(count >= 0, "a constant has a size");
  if (count < (Index{1} << 20U)) {
    law(static_cast<Index>(engine::numbers_of<float>(constant).size()) == count,
        "a constant has as many numbers as its shape says");
  }
}

void check_model(const ImportedModel& model) {
  const partitioner::Network again =
      partitioner::parse_model(engine::cfg_text(model), "m.cfg").network;
  law(again.size() == model.network.size(), "a model file has the layers that it was made of");
  for (int layer = 0; layer < again.size(); ++layer) {
    law(again.layer(layer).operation == model.network.layer(layer).operation &&
            again.layer(layer).inputs == model.network.layer(layer).inputs,
        "a model file says what was translated");
  }
}

}  // namespace

bool fuzz_onnx(Bytes bytes) {
  try {
    const OnnxFile file(fuzz_file("fuzz.onnx", bytes));
    for (const ImportedParameters& node : engine::weighted_nodes(file)) {
      check_constant(node.weight);
    }
    Translation translation(file, {});
    translation.run();
    for (const auto& [layer, parameters] : translation.all_parameters()) {
      check_constant(parameters.weight);
    }
    check_model(model_of(translation));
  } catch (const InputError&) {
    return false;
  }
  return true;
}

}  // namespace tessera::tests

#endif
