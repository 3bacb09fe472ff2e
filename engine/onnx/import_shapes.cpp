#include "engine/onnx/import_shapes.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::engine {

std::vector<SliceRange> slice_ranges(const OnnxFile& file,
                                     const onnx::NodeProto& node,
                                     const std::vector<const Constant*>& inputs,
                                     const std::vector<Index>& shape) {
  const std::vector<Index> starts = integers_at(node, "starts", inputs, 1);
  const std::vector<Index> ends = integers_at(node, "ends", inputs, 2);
  const std::vector<Index> axes = integers_at(node, "axes", inputs, 3);
  const std::vector<Index> steps = integers_at(node, "steps", inputs, 4);
  if (starts.size() != ends.size() || starts.size() > shape.size() ||
      (!axes.empty() && axes.size() != starts.size()) ||
      (!steps.empty() && steps.size() != starts.size())) {
    file.refuse(node, "its starts, ends, axes and steps are not as many");
  }
  std::vector<SliceRange> ranges;
  for (const Index side : shape) {
    ranges.push_back({.end = side});
  }
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = axes.empty() ? i : dimension(file, node, axes[i], shape.size());
    const Index side = shape[axis];
    const auto within = [side](Index place) {
      return std::clamp<Index>(place < 0 ? place + side : place, 0, side);
    };
    const Index step = steps.empty() ? 1 : steps[i];
    if (step < 1) {
      file.refuse(node, fmt::format("has a step of {}: only steps forward", step));
    }
    // Beyond the end, a step is like any other.
    ranges[axis] = {within(starts[i]), within(ends[i]), std::min(step, std::max<Index>(side, 1))};
  }
  return ranges;
}

namespace {

std::vector<Index> reshape_target(const OnnxFile& file,
                                  const onnx::NodeProto& node,
                                  const std::vector<const Constant*>& inputs,
                                  const std::vector<Index>& shape) {
  std::vector<Index> target = integers_at(node, "shape", inputs, 1);
  const bool zero_is_zero = integer(node, "allowzero", 0) != 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    target[i] = target[i] == 0 && !zero_is_zero && i < shape.size() ? shape[i] : target[i];
  }
  const auto open = std::find(target.begin(), target.end(), -1);
  if (open != target.end()) {
    *open = 1;
    const Index others = volume_of(target);
    *open = others > 0 ? volume_of(shape) / others : 0;
  }
  if (volume_of(target) != volume_of(shape)) {
    file.refuse(node,
                fmt::format("makes {} of {}: these are not as many values",
                            fmt::join(target, "x"),
                            fmt::join(shape, "x")));
  }
  return target;
}

}  // namespace

std::vector<Index> reshaped(const OnnxFile& file,
                            const onnx::NodeProto& node,
                            const std::vector<const Constant*>& inputs,
                            const std::vector<Index>& shape) {
  if (node.op_type() == "Reshape") {
    return reshape_target(file, node, inputs, shape);
  }
  std::vector<Index> out;
  if (node.op_type() == "Flatten") {
    const Index axis = integer(node, "axis", 1);
    const auto split = static_cast<std::ptrdiff_t>(axis == static_cast<Index>(shape.size())
                                                       ? shape.size()
                                                       : dimension(file, node, axis, shape.size()));
    return {volume_of({shape.begin(), shape.begin() + split}),
            volume_of({shape.begin() + split, shape.end()})};
  }
  const std::vector<Index> axes = integers_at(node, "axes", inputs, 1);
  const bool adds = node.op_type() == "Unsqueeze";
  std::vector<char> is_named(shape.size() + (adds ? axes.size() : 0),
                             adds || !axes.empty() ? 0 : 2);
  for (const Index axis : axes) {
    is_named[dimension(file, node, axis, is_named.size())] = 1;
  }
  auto side = shape.begin();
  for (const char named : is_named) {
    if (adds && named == 1) {
      out.push_back(1);
    } else if (adds && side == shape.end()) {
      file.refuse(node, "names an axis twice");
    } else {
      if (named == 0 || (named == 2 && *side != 1)) {
        out.push_back(*side);
      } else if (*side != 1) {
        file.refuse(node, fmt::format("takes away a dimension of {}", *side));
      }
      ++side;
    }
  }
  return out;
}

std::size_t dimension(const OnnxFile& file,
                      const onnx::NodeProto& node,
                      Index axis,
                      std::size_t rank) {
  const auto dimensions = static_cast<Index>(rank);
  if (axis < -dimensions || axis >= dimensions) {
    file.refuse(node, fmt::format("its axis {} is none of {} dimensions", axis, dimensions));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + dimensions : axis);
}

std::vector<Index> integers_at(const onnx::NodeProto& node,
                               std::string_view name,
                               const std::vector<const Constant*>& inputs,
                               std::size_t place) {
  return place < inputs.size() && inputs[place] != nullptr ? integers_of(*inputs[place])
                                                           : integers(node, name);
}

}  // namespace tessera::engine
