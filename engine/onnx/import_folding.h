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

// The part of each dimension that a Slice takes; steps are positive.
struct SliceRange {
  Index begin = 0;
  Index end = 0;
  Index step = 1;
  [[nodiscard]] Index count() const { return end > begin ? (end - begin - 1) / step + 1 : 0; }
};
[[nodiscard]] std::vector<SliceRange> slice_ranges(const OnnxFile& file,
                                                   const onnx::NodeProto& node,
                                                   const std::vector<const Constant*>& inputs,
                                                   const std::vector<Index>& shape);

// The shape that a Reshape, Flatten, Squeeze or Unsqueeze gives.
[[nodiscard]] std::vector<Index> reshaped(const OnnxFile& file,
                                          const onnx::NodeProto& node,
                                          const std::vector<const Constant*>& inputs,
                                          const std::vector<Index>& shape);

// The dimension that `axis`, which counts back from the last where it is negative, is of so many.
[[nodiscard]] std::size_t dimension(const OnnxFile& file,
                                    const onnx::NodeProto& node,
                                    Index axis,
                                    std::size_t rank);

// An attribute of earlier versions of an operator that later ones have as an input.
[[nodiscard]] std::vector<Index> integers_at(const onnx::NodeProto& node,
                                             std::string_view name,
                                             const std::vector<const Constant*>& inputs,
                                             std::size_t place);

}  // namespace tessera::engine
