// An ONNX file as its messages have it, and what is asked of them: attributes of nodes, numbers of
// constants. Whoever made the file is not trusted: sizes are checked before anything is allocated
// by them, and other files are never read. What cannot be used is an InputError with the path.

#pragma once

#include <filesystem>
#include <memory>
#include <onnx/onnx_pb.h>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

class OnnxFile {
 public:
  explicit OnnxFile(const std::filesystem::path& path);

  [[nodiscard]] const onnx::GraphProto& graph() const { return model_->graph(); }
  [[nodiscard]] Index opset() const { return opset_; }  // of ONNX's own operators
  [[nodiscard]] Index bytes() const { return bytes_; }

  [[nodiscard]] std::string metadata(std::string_view key) const;  // "": none

  [[noreturn]] void refuse(std::string_view reason) const;
  // "FILE: node 'NAME' (OPERATOR): REASON"
  [[noreturn]] void refuse(const onnx::NodeProto& node, std::string_view reason) const;

 private:
  void expect_readable() const;

  std::filesystem::path path_;
  Index bytes_ = 0;
  std::unique_ptr<onnx::ModelProto> model_;
  Index opset_ = 0;
};

// Null where the node has none of that name.
[[nodiscard]] const onnx::AttributeProto* attribute(const onnx::NodeProto& node,
                                                    std::string_view name);
[[nodiscard]] Index integer(const onnx::NodeProto& node, std::string_view name, Index otherwise);
[[nodiscard]] double real(const onnx::NodeProto& node, std::string_view name, double otherwise);
[[nodiscard]] std::string word(const onnx::NodeProto& node,
                               std::string_view name,
                               std::string_view otherwise);
[[nodiscard]] std::vector<Index> integers(const onnx::NodeProto& node,
                                          std::string_view name,
                                          std::vector<Index> otherwise = {});

// Whether the node has an input there: optional ones may be named "", or be left out at the end.
[[nodiscard]] inline bool has_input(const onnx::NodeProto& node, int i) {
  return i < node.input_size() && !node.input(i).empty();
}

// A tensor that is known: in the file, where `stored` points, or computed from such ones.
struct Constant {
  std::vector<Index> shape = {};
  bool is_integer = false;
  std::vector<double> numbers = {};  // where nothing is stored; one alone stands for all
  const onnx::TensorProto* stored = nullptr;
  bool transposed = false;  // stored with the first two of `shape` the other way around
};

// The product, or -1 where a number is negative or all together are beyond 2^40.
[[nodiscard]] Index volume_of(const std::vector<Index>& shape);

// Throws InputError where the tensor has not as many numbers as it says, lies in another file, or
// is of a type that networks do not have. `what`: "initializer 'NAME'", ...
[[nodiscard]] Constant stored_constant(const OnnxFile& file,
                                       const std::string& what,
                                       const onnx::TensorProto& tensor);

// All numbers of a constant, in the order of its shape. Integers beyond 2^53 are rounded.
template <class T>
[[nodiscard]] std::vector<T> numbers_of(const Constant& constant);

// Makes its first two dimensions change places.
void turn(Constant& constant);

// The same as whole numbers, at most 2^53 on either side of 0.
[[nodiscard]] std::vector<Index> integers_of(const Constant& constant);

}  // namespace tessera::engine
