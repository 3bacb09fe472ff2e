// How the input of a detector is made of pictures, and where the objects on them come to lie on it.
// README.md has the rules.
//
// The picture, or a window of it that may reach beyond its edges, is stretched to the input: what
// lies outside is grey. In training the input may be made of several pictures: of four, a quarter
// each (mosaic), or of two, one shining through the other (mixup); or of five, one shining through
// a mosaic. Everything random is drawn by global position, as in augment.h.

#pragma once

#include <span>
#include <vector>

#include "engine/base/targets.h"
#include "engine/data/batch/augment.h"

namespace tessera::engine {

// What there is beside a picture, and with letter_box=2.
inline constexpr float kOutsideOfPicture = 0.5F;
inline constexpr float kOutsideAtTopLeft = 114.0F / 255.0F;

// How many pictures the input at `place` of an epoch is made of.
[[nodiscard]] int pictures_at(const RenderingRules& rules,
                              std::uint64_t seed,
                              Index epoch,
                              Index place);

// Which item of a data set of `size` joins as picture `number` > 0.
[[nodiscard]] Index joining_item(
    std::uint64_t seed, Index epoch, Index place, int number, Index size);

// The cells of the input that show one of its pictures, and by how much.
struct PictureWindow {
  Range rows;
  Range cols;
  float share = 1;
};

[[nodiscard]] PictureWindow window_at(
    const RenderingRules& rules, std::uint64_t seed, Index epoch, Index place, int number);

// What happens to picture `number` of those at `place`.
[[nodiscard]] Augmentation place_picture(const RenderingRules& rules,
                                         const partitioner::MapShape& picture,
                                         std::uint64_t seed,
                                         Index epoch,
                                         Index place,
                                         int number);

// For testing: the whole picture, stretched; or with letter_box in its own proportions, between
// grey bars or at the top left.
[[nodiscard]] Augmentation whole_picture(const RenderingRules& rules,
                                         const partitioner::MapShape& picture);

// The boxes of a picture where its augmentation puts them, in fractions of the input.
[[nodiscard]] std::vector<Box> boxes_on_input(std::span<const Box> boxes,
                                              const Augmentation& augmentation,
                                              const partitioner::MapShape& picture,
                                              const RenderingRules& rules);

// The other way: where a place on the input, in fractions of it, lies on the picture, in fractions
// of that.
struct PicturePlace {
  double x = 0;
  double y = 0;
};
[[nodiscard]] PicturePlace place_on_picture(const PicturePlace& on_input,
                                            const Augmentation& augmentation,
                                            const partitioner::MapShape& picture,
                                            const RenderingRules& rules);

// What is left of boxes on the input within a window; none is narrower or lower than a thousandth
// of the input, which is Darknet's bound.
[[nodiscard]] std::vector<Box> boxes_within(std::span<const Box> boxes,
                                            const PictureWindow& window,
                                            const RenderingRules& rules);

}  // namespace tessera::engine
