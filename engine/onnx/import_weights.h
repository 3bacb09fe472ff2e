// The parameters of an imported model, as a checkpoint names them.

#pragma once

#include <filesystem>

#include "engine/files/safetensors.h"
#include "engine/onnx/import_model.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

// What layers of a network take from a file: null for one without parameters.
using ParameterSources = std::vector<const ImportedParameters*>;

[[nodiscard]] ParameterSources sources_of(const Translation& translation,
                                          const ImportedModel& model);

// Writes all parameters of the network, with the model file's text among its metadata; whoever
// calls commits the file. `model`: what the network is part of. Normalisation that a source lacks
// is one that changes nothing. Throws InputError where numbers are not finite or variances
// negative.
[[nodiscard]] std::unique_ptr<SafetensorsWriter> written_parameters(
    const OnnxFile& file,
    const partitioner::ModelFile& model,
    const ParameterSources& sources,
    const std::filesystem::path& to);

}  // namespace tessera::engine
