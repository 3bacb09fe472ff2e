// Tensors of an ONNX file as its messages have them: numbers in the order of C, raw bytes, little
// end first.

#pragma once

#include <cstdint>
#include <onnx/onnx_pb.h>
#include <span>
#include <string>

#include "engine/base/tensor.h"

namespace tessera::engine {

// The metadata of an exported file that has the model file in it.
inline constexpr const char* kModelFileKey = "tessera_model";

[[nodiscard]] onnx::TensorProto tensor_message(const std::string& name,
                                               std::span<const Index> dims,
                                               std::span<const float> values);
[[nodiscard]] onnx::TensorProto tensor_message(const std::string& name,
                                               std::span<const Index> dims,
                                               std::span<const std::int64_t> values);

}  // namespace tessera::engine
