// The shapes that nodes give to what they read, of constants and of maps alike. `inputs` are those
// of the node, null where one is no constant.

#pragma once

#include "engine/onnx/import_file.h"

namespace tessera::engine {

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
