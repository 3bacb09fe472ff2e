// ONNX files of convolutional networks, as PyTorch's exporters write them, become model files and
// weights; README.md has the table of operators and sections. What no section can say is an
// InputError that names the file and the node; then no file is written.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "partitioner/cfg/model_file.h"
#include "partitioner/network/input_sizes.h"

namespace tessera::engine {

struct Import {
  std::filesystem::path from;
  std::filesystem::path cfg;         // what it becomes; weights lie beside it
  partitioner::InputSize size = {};  // of the input; 0 x 0: the file says it
};

// Where weights lie that belong to a model file: its name with .safetensors at the end.
[[nodiscard]] std::filesystem::path weights_beside(const std::filesystem::path& cfg);

// Returns what the user should know of the model, a sentence each.
[[nodiscard]] std::vector<std::string> import_onnx(const Import& import);

// Writes the weights of an ONNX file as those of a given model: layers with parameters take those
// of the nodes that have some, one after the other. Returns what the user should know, a sentence
// each. Throws InputError where sizes differ.
[[nodiscard]] std::vector<std::string> import_onnx_weights(const std::filesystem::path& from,
                                                           const partitioner::ModelFile& model,
                                                           const std::filesystem::path& to);

}  // namespace tessera::engine
