#include "engine/onnx/messages.h"

#include <bit>

namespace tessera::engine {

namespace {

static_assert(std::endian::native == std::endian::little);

template <class Number>
onnx::TensorProto message(const std::string& name,
                          std::span<const Index> dims,
                          std::span<const Number> values,
                          onnx::TensorProto::DataType type) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const Index dim : dims) {
    tensor.add_dims(dim);
  }
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor;
}

}  // namespace

onnx::TensorProto tensor_message(const std::string& name,
                                 std::span<const Index> dims,
                                 std::span<const float> values) {
  return message(name, dims, values, onnx::TensorProto::FLOAT);
}

onnx::TensorProto tensor_message(const std::string& name,
                                 std::span<const Index> dims,
                                 std::span<const std::int64_t> values) {
  return message(name, dims, values, onnx::TensorProto::INT64);
}

}  // namespace tessera::engine
