// From a picture to the network's input: scaling, cutting out, turning, mirroring, colours.
// README.md has the rules.
//
// Everything random is drawn by global position (seed, epoch, place in it), and every cell
// of the input is computed from the picture on its own: any rank renders any region of any picture
// alone, and gets the bits that another rank gets for the same cells. Where pictures have a fixed
// number of variants, the number of the variant stands for the epoch and the picture's for the
// place.
//
// Continuous coordinates: the centre of the top-left cell is (0.5, 0.5). Between centres values are
// bilinear; outside the picture everything is 0, or grey for detectors.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/pictures/picture.h"
#include "partitioner/base/region.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/network/input_sizes.h"

namespace tessera::engine {

// How the values that the network sees are scaled: (value - mean) / stddev, for each channel or,
// where there is one number, for all. Empty: left at 0..1 (or -1..1, where a [crop] layer asks for
// that).
struct PixelConvention {
  std::vector<float> mean;
  std::vector<float> stddev;
};

// What the model file and the data set say about making an input of a picture.
struct RenderingRules {
  partitioner::MapShape input;  // the network's
  partitioner::MapShape
      picture;  // what a picture is scaled to before [crop] cuts `input` out; equal without [crop]
  partitioner::AugmentationOptions augmentation;
  std::optional<partitioner::Crop> crop;
  PixelConvention convention;
  bool detects = false;  // a detector's: see box_placement.h
};

// The rules of a model file, with or without a [crop] layer.
[[nodiscard]] RenderingRules rendering_rules(const partitioner::ModelFile& model,
                                             PixelConvention convention = {});

// The same for an input of another size. There is no [crop].
[[nodiscard]] RenderingRules rules_of_size(RenderingRules rules,
                                           const partitioner::InputSize& size);

// What is subtracted from the values 0..1 of each channel of the input, and what they are then
// divided by: the convention's numbers, else those that bring pixels to where the model wants them.
struct ChannelValues {
  std::vector<float> mean;
  std::vector<float> stddev;
};
[[nodiscard]] ChannelValues channel_values(const RenderingRules& rules);

// What is kept of pictures for these rules: a held pixel is never larger than a cell of the input,
// however a picture is augmented. The same for training and for testing.
[[nodiscard]] Detail needed_detail(const RenderingRules& rules);

// Throws InputError that starts with `where` (the model file) if the rules cannot be followed.
void check_rules(const RenderingRules& rules, const std::string& where);

// Whether a picture may look different each time that it is trained on. `all`: the shape of all
// pictures; nothing where they may have several.
[[nodiscard]] bool varies_pictures(const RenderingRules& rules,
                                   const std::optional<partitioner::MapShape>& all);

// What happens to one picture. Cell (row, col) of the input, its column mirrored first where
// `mirrored`, shows the picture at
//   x = centre_x + x_per_col * (col + 0.5 - cols / 2) + x_per_row * (row + 0.5 - rows / 2), and y
//   likewise.
struct Augmentation {
  bool mirrored = false;
  double centre_x = 0;
  double centre_y = 0;
  double x_per_col = 1;
  double x_per_row = 0;
  double y_per_col = 0;
  double y_per_row = 1;
  float hue = 0;         // turns of the colour circle, added
  float saturation = 1;  // factor
  float exposure = 1;    // factor
  float outside = 0;     // what there is beside the picture
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

// For testing: scaled to cover the input, cut out at the centre.
[[nodiscard]] Augmentation centre_crop(const RenderingRules& rules,
                                       const partitioner::MapShape& picture);

// For training: what to do to the picture at `place` of an epoch, whatever the batches are.
[[nodiscard]] Augmentation draw_augmentation(const RenderingRules& rules,
                                             const partitioner::MapShape& picture,
                                             std::uint64_t seed,
                                             Index epoch,
                                             Index place);

// Assigns to `out`, (C, H, W) of `region`, those cells of the network's input. `region` lies in the
// input map (its images are not looked at). Where pictures are of the input's size and only
// mirrored or moved, values are copied exactly.
void render(const Picture& picture,
            const Augmentation& augmentation,
            const RenderingRules& rules,
            const Region& region,
            std::span<float> out);

}  // namespace tessera::engine
