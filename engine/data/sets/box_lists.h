// The objects on many pictures, in one piece of memory: a data set has up to millions.

#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/targets.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class BoxLists {
 public:
  // Adds the objects on one more picture.
  void add(std::span<const Box> boxes) {
    boxes_.insert(boxes_.end(), boxes.begin(), boxes.end());
    ends_.push_back(boxes_.size());
  }
  [[nodiscard]] Index size() const { return static_cast<Index>(ends_.size()); }
  [[nodiscard]] std::span<const Box> operator[](Index item) const {
    const auto i = static_cast<std::size_t>(item);
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::span<const Box>(boxes_).subspan(begin, ends_[i] - begin);
  }
  [[nodiscard]] std::span<Box> of(Index item) {
    const std::span<const Box> its = (*this)[item];
    return std::span<Box>(boxes_).subspan(static_cast<std::size_t>(its.data() - boxes_.data()),
                                          its.size());
  }
  // Those of all pictures.
  [[nodiscard]] std::span<const Box> all() const { return boxes_; }
  [[nodiscard]] std::span<Box> all() { return boxes_; }
  [[nodiscard]] Index bytes() const {
    return static_cast<Index>(boxes_.capacity() * sizeof(Box) +
                              ends_.capacity() * sizeof(std::size_t));
  }

 private:
  std::vector<Box> boxes_;
  std::vector<std::size_t> ends_;
};

// Differs where the boxes do, or their order.
[[nodiscard]] inline std::uint64_t digest_of(std::span<const Box> boxes) {
  Digest digest;
  for (const Box& box : boxes) {
    digest.add(static_cast<std::uint64_t>(box.label));
    for (const float number : {box.centre_x, box.centre_y, box.width, box.height}) {
      digest.add(std::uint64_t{std::bit_cast<std::uint32_t>(number)});
    }
    if (box.ignored) {
      digest.add(std::uint64_t{1});
    }
  }
  return digest.value();
}

}  // namespace tessera::engine
