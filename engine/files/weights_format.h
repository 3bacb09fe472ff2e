// Which of the two formats a file of weights is in. Darknet's files are named in many ways
// (yolov2.weights, darknet19.conv.18), so the content decides, except for names that end in
// .safetensors: these are to be one, and a damaged one must not be taken for the other.

#pragma once

#include <filesystem>

namespace tessera::engine {

// Throws InputError where the file cannot be read, or is of another known format (PyTorch, ONNX,
// HDF5), which it names.
[[nodiscard]] bool is_safetensors(const std::filesystem::path& path);

}  // namespace tessera::engine
