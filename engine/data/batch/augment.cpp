#include "engine/data/batch/augment.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <utility>

#include "engine/data/batch/augment_draws.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

using partitioner::MapShape;

// How a picture lies on the map that it is scaled to, in that map's pixels.
struct Placement {
  double zoom = 1;     // 1: it just covers the map
  double aspect = 1;   // how much narrower it becomes
  double angle = 0;    // radians
  double along_x = 0;  // -1..1: from one edge of what sticks out of the map to the other
  double along_y = 0;
  double shift_x = 0;  // pixels more to the right, of what is shown
  double shift_y = 0;
};

// Rounded, so that a last bit by which C libraries differ does not become another picture.
double rounded(double value) {
  return static_cast<double>(static_cast<float>(value));
}

Augmentation placed(const MapShape& picture, const MapShape& map, const Placement& place) {
  const auto cols = static_cast<double>(picture.cols);
  const auto rows = static_cast<double>(picture.rows);
  const auto map_cols = static_cast<double>(map.cols);
  const auto map_rows = static_cast<double>(map.rows);
  const double scale = place.zoom * std::max(map_rows / rows, map_cols * place.aspect / cols);
  const double x_scale = scale / place.aspect;  // map pixels per picture pixel
  const double dx = place.along_x * (cols * x_scale - map_cols) / 2 + place.shift_x;
  const double dy = place.along_y * (rows * scale - map_rows) / 2 + place.shift_y;
  const double cosine = rounded(std::cos(place.angle));
  const double sine = rounded(std::sin(place.angle));
  Augmentation augmentation;
  augmentation.x_per_col = cosine / x_scale;
  augmentation.x_per_row = -sine / scale;
  augmentation.y_per_col = sine / x_scale;
  augmentation.y_per_row = cosine / scale;
  augmentation.centre_x = cols / 2 + augmentation.x_per_col * dx + augmentation.x_per_row * dy;
  augmentation.centre_y = rows / 2 + augmentation.y_per_col * dx + augmentation.y_per_row * dy;
  return augmentation;
}

// From the centre of the map that pictures are scaled to, to the centre of the window that [crop]
// cuts out of it.
double window_shift(Index map, Index window, Index begin) {
  return static_cast<double>(begin) + static_cast<double>(window) / 2 -
         static_cast<double>(map) / 2;
}

// Between which lengths the short side of the map that pictures are scaled to is drawn.
struct ShortSides {
  Index least = 0;
  Index most = 0;
};

ShortSides short_sides(const RenderingRules& rules) {
  const partitioner::AugmentationOptions& options = rules.augmentation;
  const Index side = std::min(rules.picture.rows, rules.picture.cols);
  const Index least = options.min_crop > 0 ? options.min_crop : side;
  const Index most = options.max_crop > 0 ? options.max_crop : side;
  return {std::min(least, most), std::max(least, most)};
}

Placement draw_placement(const RenderingRules& rules, const AugmentationDraws& draws) {
  const partitioner::AugmentationOptions& options = rules.augmentation;
  const MapShape& map = rules.picture;
  const Index side = std::min(map.rows, map.cols);
  const ShortSides sides = short_sides(rules);
  const double crop_angle = rules.crop ? rules.crop->angle : 0;
  Placement place;
  place.zoom = static_cast<double>(draws.whole(sides.least, sides.most, Draw::Zoom)) /
               static_cast<double>(side);
  place.aspect = draws.factor(options.aspect, Draw::Aspect, Draw::AspectInverse);
  place.angle = (draws.between(-options.angle, options.angle, Draw::Angle) +
                 draws.between(-crop_angle, crop_angle, Draw::CropAngle)) *
                (std::numbers::pi / 180);
  place.along_x = draws.between(-1, 1, Draw::OffsetX);
  place.along_y = draws.between(-1, 1, Draw::OffsetY);
  const Index padding = options.crop_padding;
  place.shift_x =
      static_cast<double>(draws.whole(-padding, padding, Draw::PaddingX)) +
      window_shift(
          map.cols, rules.input.cols, draws.whole(0, map.cols - rules.input.cols, Draw::WindowX));
  place.shift_y =
      static_cast<double>(draws.whole(-padding, padding, Draw::PaddingY)) +
      window_shift(
          map.rows, rules.input.rows, draws.whole(0, map.rows - rules.input.rows, Draw::WindowY));
  return place;
}

void require_factor(double value, const char* key, const std::string& where) {
  if (!(value > 0) || !std::isfinite(value)) {
    throw InputError(
        where,
        0,
        fmt::format("{} = {}: expected a factor above 0 (1 changes nothing)", key, value));
  }
}

void require_amount(double value, const char* key, const std::string& where) {
  if (!(value >= 0) || !std::isfinite(value)) {
    throw InputError(
        where, 0, fmt::format("{} = {}: expected 0 (changes nothing) or more", key, value));
  }
}

void check_convention(const PixelConvention& convention, Index channels, const std::string& where) {
  for (const std::vector<float>* values : {&convention.mean, &convention.stddev}) {
    if (values->size() > 1 && static_cast<Index>(values->size()) != channels) {
      throw InputError(where,
                       0,
                       fmt::format("{} numbers to normalise pixels with, the network's pictures "
                                   "have {} channel{}: give one number, or one per channel",
                                   values->size(),
                                   channels,
                                   channels == 1 ? "" : "s"));
    }
  }
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(convention.mean.begin(), convention.mean.end(), finite)) {
    throw InputError(
        where, 0, "a mean to normalise pixels with is not a finite number: give its true value");
  }
  const bool usable = std::all_of(convention.stddev.begin(),
                                  convention.stddev.end(),
                                  [&finite](float s) { return s > 0 && finite(s); });
  if (!usable) {
    throw InputError(where,
                     0,
                     "a standard deviation to normalise pixels with is not a finite number above "
                     "0: give its true value");
  }
}

// By how much a detector's picture is enlarged at most. Farther than by half, as one window of ten
// is at jitter=.3, values between held pixels are taken: to keep those would take three times the
// memory.
double largest_zoom(const partitioner::AugmentationOptions& options) {
  constexpr double kMost = 1.5;
  const double cut = 2 * options.jitter + (options.resize > 1 ? 1 - 1 / options.resize : 0);
  return cut < 1 - 1 / kMost ? 1 / (1 - cut) : kMost;
}

}  // namespace

RenderingRules rendering_rules(const partitioner::ModelFile& model, PixelConvention convention) {
  RenderingRules rules{model.network.image,
                       model.network.image,
                       model.augmentation,
                       std::nullopt,
                       std::move(convention),
                       is_detector(model.network)};
  if (!model.network.layers.empty()) {
    if (const auto* crop =
            std::get_if<partitioner::Crop>(&model.network.layers.front().operation)) {
      rules.crop = *crop;
      rules.picture = model.picture;
    }
  }
  return rules;
}

RenderingRules rules_of_size(RenderingRules rules, const partitioner::InputSize& size) {
  expects(!rules.crop, "pictures are scaled to the input's size");
  rules.input.rows = size.rows;
  rules.input.cols = size.cols;
  rules.picture = rules.input;
  return rules;
}

Detail needed_detail(const RenderingRules& rules) {
  const MapShape& map = rules.picture;
  const auto side = static_cast<double>(std::min(map.rows, map.cols));
  const double zoom = rules.detects
                          ? largest_zoom(rules.augmentation)
                          : std::max(1.0, static_cast<double>(short_sides(rules).most) / side);
  const double aspect =
      rules.detects ? 1 : std::max(rules.augmentation.aspect, 1 / rules.augmentation.aspect);
  constexpr double kMost = 1e9;  // no picture has as many rows
  const auto whole = [&](Index size) {
    const double needed = std::ceil(static_cast<double>(size) * zoom * aspect);
    return static_cast<Index>(needed < kMost ? needed : kMost);
  };
  return {whole(map.rows), whole(map.cols)};
}

void check_rules(const RenderingRules& rules, const std::string& where) {
  constexpr Index kMaxSide = Index{1} << 20;
  const partitioner::AugmentationOptions& options = rules.augmentation;
  require_factor(options.aspect, "aspect", where);
  require_factor(options.saturation, "saturation", where);
  require_factor(options.exposure, "exposure", where);
  require_amount(options.angle, "angle", where);
  require_amount(options.hue, "hue", where);
  require_amount(options.jitter, "jitter", where);
  require_factor(options.resize, "resize", where);
  for (const Index pixels : {options.min_crop, options.max_crop, options.crop_padding}) {
    if (pixels < 0 || pixels > kMaxSide) {
      throw InputError(
          where,
          0,
          fmt::format("{} pixels for min_crop, max_crop or crop_padding: expected 0 to {}",
                      pixels,
                      kMaxSide));
    }
  }
  if (rules.crop) {
    require_factor(rules.crop->saturation, "saturation of [crop]", where);
    require_factor(rules.crop->exposure, "exposure of [crop]", where);
    require_amount(rules.crop->angle, "angle of [crop]", where);
  }
  if (rules.input.volume() < 1 || rules.picture.rows < rules.input.rows ||
      rules.picture.cols < rules.input.cols) {
    throw InputError(where,
                     0,
                     fmt::format("an input of {} x {} cannot be cropped from pictures of {} x {}: "
                                 "change height and width",
                                 rules.input.rows,
                                 rules.input.cols,
                                 rules.picture.rows,
                                 rules.picture.cols));
  }
  check_convention(rules.convention, rules.input.channels, where);
}

bool varies_pictures(const RenderingRules& rules, const std::optional<MapShape>& all) {
  const partitioner::AugmentationOptions& options = rules.augmentation;
  const partitioner::Crop crop = rules.crop.value_or(partitioner::Crop{});
  const bool colours = options.hue != 0 || options.saturation != 1 || options.exposure != 1 ||
                       crop.saturation != 1 || crop.exposure != 1;
  if (options.flip || crop.flip || (colours && rules.input.channels == 3)) {
    return true;
  }
  if (rules.detects) {
    const bool joins = options.mosaic ? options.mosaic_share > 0 : options.mixup;
    return joins || options.jitter != 0 || options.resize != 1;
  }
  const MapShape& map = rules.picture;
  const auto [least, most] = short_sides(rules);
  const bool scales = std::min(map.rows, map.cols) != least || least != most || options.aspect != 1;
  const bool turns = options.angle != 0 || crop.angle != 0;
  const auto same_size = [&map](const MapShape& other) {
    return other.rows == map.rows && other.cols == map.cols;
  };
  const bool shifts = options.crop_padding != 0 || !same_size(rules.input) || !all ||
                      !same_size(*all);  // what exceeds the map is divided at random
  return scales || turns || shifts;
}

Augmentation centre_crop(const RenderingRules& rules, const MapShape& picture) {
  const MapShape& map = rules.picture;
  Placement place;
  place.shift_x = window_shift(map.cols, rules.input.cols, (map.cols - rules.input.cols) / 2);
  place.shift_y = window_shift(map.rows, rules.input.rows, (map.rows - rules.input.rows) / 2);
  return placed(picture, map, place);
}

void draw_flip_and_colours(const RenderingRules& rules,
                           const AugmentationDraws& draws,
                           Augmentation& augmentation) {
  const partitioner::AugmentationOptions& options = rules.augmentation;
  augmentation.mirrored =
      (options.flip || (rules.crop && rules.crop->flip)) && draws.coin(Draw::Mirror);
  if (rules.input.channels != 3) {
    return;
  }
  double saturation = draws.factor(options.saturation, Draw::Saturation, Draw::SaturationInverse);
  double exposure = draws.factor(options.exposure, Draw::Exposure, Draw::ExposureInverse);
  if (rules.crop) {
    saturation *=
        draws.factor(rules.crop->saturation, Draw::CropSaturation, Draw::CropSaturationInverse);
    exposure *= draws.factor(rules.crop->exposure, Draw::CropExposure, Draw::CropExposureInverse);
  }
  augmentation.hue = static_cast<float>(draws.between(-options.hue, options.hue, Draw::Hue));
  augmentation.saturation = static_cast<float>(saturation);
  augmentation.exposure = static_cast<float>(exposure);
}

Augmentation draw_augmentation(const RenderingRules& rules,
                               const MapShape& picture,
                               std::uint64_t seed,
                               Index epoch,
                               Index place) {
  const AugmentationDraws draws(seed, epoch, place);
  Augmentation augmentation = placed(picture, rules.picture, draw_placement(rules, draws));
  draw_flip_and_colours(rules, draws, augmentation);
  return augmentation;
}

}  // namespace tessera::engine
