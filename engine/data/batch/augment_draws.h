// The random numbers that a picture is augmented by, each under its own number.

#pragma once

#include <cstdint>

#include "engine/base/random.h"
#include "engine/data/batch/augment.h"

namespace tessera::engine {

// The numbers of the draws for one picture. New ones go to the end: the others keep their values.
enum class Draw : std::uint64_t {
  Zoom,
  Aspect,
  AspectInverse,
  Angle,
  OffsetX,
  OffsetY,
  PaddingX,
  PaddingY,
  WindowX,
  WindowY,
  Mirror,
  Hue,
  Saturation,
  SaturationInverse,
  Exposure,
  ExposureInverse,
  CropAngle,
  CropSaturation,
  CropSaturationInverse,
  CropExposure,
  CropExposureInverse,
  JitterLeft,
  JitterRight,
  JitterTop,
  JitterBottom,
  ResizeFirst,
  ResizeSecond,
  MosaicRow,
  MosaicCol,
  Mixup,
  Item,
  Mosaic
};

class AugmentationDraws {
 public:
  // `number`: of the pictures that the input at that place is made of.
  AugmentationDraws(std::uint64_t seed, Index epoch, Index place, int number = 0)
      : seed_(mix_bits(seed ^ kAugmentation ^ static_cast<std::uint64_t>(number) * kGolden)),
        epoch_(static_cast<std::uint64_t>(epoch)),
        place_(static_cast<std::uint64_t>(place)) {}

  [[nodiscard]] double between(double low, double high, Draw draw) const {
    return low + (high - low) * random_uniform(seed_, epoch_, place_, number(draw));
  }

  // An integer from low to high, both possible.
  [[nodiscard]] Index whole(Index low, Index high, Draw draw) const {
    const auto choices = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<Index>(random_bits(seed_, epoch_, place_, number(draw)) % choices);
  }

  [[nodiscard]] bool coin(Draw draw) const {
    return random_bits(seed_, epoch_, place_, number(draw)) >> 63U != 0;
  }

  // Uniform from 1 to `most`, inverted half of the time: as often larger as smaller.
  [[nodiscard]] double factor(double most, Draw draw, Draw inverse) const {
    const double value = between(1, most, draw);
    return coin(inverse) ? 1 / value : value;
  }

 private:
  static std::uint64_t number(Draw draw) { return static_cast<std::uint64_t>(draw); }

  static constexpr std::uint64_t kAugmentation =
      0x7069637475726573U;  // draws of other parts have other seeds
  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::uint64_t place_;
};

// Draws whether the picture is mirrored, and how its colours change.
void draw_flip_and_colours(const RenderingRules& rules,
                           const AugmentationDraws& draws,
                           Augmentation& augmentation);

}  // namespace tessera::engine
