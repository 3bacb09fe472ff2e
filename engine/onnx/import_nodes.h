// The nodes of a graph that have weights, without what they are part of.

#pragma once

#include "engine/onnx/import_translation.h"

namespace tessera::engine {

// In the file's order: convolutions and products with constant weights, each with the bias and the
// normalisation that follow it; other normalisations with weights of 1.
[[nodiscard]] std::vector<ImportedParameters> weighted_nodes(const OnnxFile& file);

}  // namespace tessera::engine
