// What an exported graph computes from constants alone: sizes of maps, bounds, the order of
// weights. Once the size of the input is a number, these are numbers, too.

#pragma once

#include <optional>

#include "engine/onnx/import_file.h"

namespace tessera::engine {

// How much all foldings of a file may compute together: exported graphs need a few thousand
// numbers.
class FoldingBudget {
 public:
  // Throws InputError where that much is left no more.
  void spend(const OnnxFile& file, const onnx::NodeProto& node, Index elements);

 private:
  Index left_ = 4'000'000;
};

// The constant that the node computes; empty where no folding is known for its operator. `inputs`:
// null where an optional one is not given.
[[nodiscard]] std::optional<Constant> folded(const OnnxFile& file,
                                             const onnx::NodeProto& node,
                                             const std::vector<const Constant*>& inputs,
                                             FoldingBudget& budget);

// What a node Constant holds.
[[nodiscard]] Constant constant_of(const OnnxFile& file, const onnx::NodeProto& node);

}  // namespace tessera::engine
