// A translated graph as a model file: layers in an order in which most of them read the one before,
// as sections do; those that nothing reads are the outputs, in the order of the graph's.

#pragma once

#include <string>
#include <vector>

#include "engine/onnx/import_translation.h"
#include "partitioner/network/norm_rule.h"

namespace tessera::engine {

struct ImportedModel {
  partitioner::Network network;
  std::vector<int> translated;  // of each layer, which one it is in the translation; -1: a new one
  partitioner::NormRule norm;   // of all its layers
};

[[nodiscard]] ImportedModel model_of(const Translation& translation);

// The text of its .cfg.
[[nodiscard]] std::string cfg_text(const ImportedModel& model);

}  // namespace tessera::engine
