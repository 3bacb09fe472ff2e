// Data sets of small pictures that are kept in memory as they are stored: one byte per value. MNIST
// and its family (IDX) and CIFAR are of this kind.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/data/pictures/picture.h"

namespace tessera::engine {

struct BytePictures {
  partitioner::MapShape shape;       // of each picture
  std::vector<std::uint8_t> pixels;  // (N, C, H, W)
  std::vector<std::uint8_t> labels;  // N class indices; empty where only pictures were asked for
  std::vector<std::string> class_names;

  [[nodiscard]] Index size() const { return static_cast<Index>(pixels.size()) / shape.volume(); }
};

[[nodiscard]] inline Picture read_byte_picture(const BytePictures& pictures,
                                               Index item,
                                               Index channels,
                                               const Detail& detail = {}) {
  const Index volume = pictures.shape.volume();
  const std::span<const std::uint8_t> all(pictures.pixels);
  return picture_of_planes(
      all.subspan(static_cast<std::size_t>(item * volume), static_cast<std::size_t>(volume)),
      pictures.shape,
      channels,
      detail);
}

// The same for pictures of the same shape and values.
[[nodiscard]] inline std::uint64_t content_digest(const BytePictures& pictures, Index item) {
  const auto volume = static_cast<std::size_t>(pictures.shape.volume());
  Digest digest;
  for (const Index size : {pictures.shape.channels, pictures.shape.rows, pictures.shape.cols}) {
    digest.add(static_cast<std::uint64_t>(size));
  }
  digest.add(std::span(pictures.pixels).subspan(static_cast<std::size_t>(item) * volume, volume));
  return digest.value();
}

// Takes items out, given in rising order, without a second copy of the others.
void remove_items(const std::vector<Index>& items, BytePictures& pictures);

// Makes room for `items` in all.
void reserve(Index items, BytePictures& pictures);

// Adds those of `more`, of the same shape, behind the others.
void add_pictures(const BytePictures& more, BytePictures& pictures);

// "0", "1", ... for data sets that come without names.
[[nodiscard]] inline std::vector<std::string> numbered_names(int classes) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(classes));
  for (int i = 0; i < classes; ++i) {
    names.push_back(std::to_string(i));
  }
  return names;
}

}  // namespace tessera::engine
