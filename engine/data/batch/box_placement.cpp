#include "engine/data/batch/box_placement.h"

#include <algorithm>
#include <cmath>

#include "engine/data/batch/augment_draws.h"

namespace tessera::engine {

namespace {

using partitioner::MapShape;

// What is cut off at each side, in fractions of the picture; below 0: what is added.
struct Cuts {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;

  [[nodiscard]] double width() const { return 1 - left - right; }
  [[nodiscard]] double height() const { return 1 - top - bottom; }
};

// Something is left between the two cuts.
void leave_some(double& one, double& other) {
  constexpr double kLeast = 0.05;
  const double missing = kLeast - (1 - one - other);
  if (missing > 0) {
    one -= missing / 2;
    other -= missing / 2;
  }
}

// The shares by which `resize` cuts at most and at least, which is below 0.
struct ResizeCuts {
  double least = 0;
  double most = 0;
};

ResizeCuts resize_cuts(double resize) {
  const double up = std::max(resize, 1 / resize);
  const double least = (1 - up) / 2;
  return {least, resize < 1 ? 0 : (1 - 1 / up) / 2};
}

Cuts draw_cuts(const RenderingRules& rules, const AugmentationDraws& draws) {
  const double jitter = rules.augmentation.jitter;
  Cuts cuts{draws.between(-jitter, jitter, Draw::JitterLeft),
            draws.between(-jitter, jitter, Draw::JitterRight),
            draws.between(-jitter, jitter, Draw::JitterTop),
            draws.between(-jitter, jitter, Draw::JitterBottom)};
  const ResizeCuts resize = resize_cuts(rules.augmentation.resize);
  const double first = draws.between(resize.least, resize.most, Draw::ResizeFirst);
  const double second = draws.between(resize.least, resize.most, Draw::ResizeSecond);
  cuts.left += first;
  cuts.top += first;
  cuts.right += second;
  cuts.bottom += second;
  leave_some(cuts.left, cuts.right);
  leave_some(cuts.top, cuts.bottom);
  return cuts;
}

// Keeps the picture's proportions.
void add_bars(const RenderingRules& rules, const MapShape& picture, bool mirrored, Cuts& cuts) {
  const MapShape& input = rules.input;
  const double first = rules.augmentation.top_left ? 0 : 0.5;  // share of the bar at the top
  const double left = mirrored ? 1 - first : first;
  const double picture_ratio =
      static_cast<double>(picture.cols) / static_cast<double>(picture.rows);
  const double ratio =
      picture_ratio * static_cast<double>(input.rows) / static_cast<double>(input.cols);
  if (ratio > 1) {
    cuts.top -= first * (ratio - 1);
    cuts.bottom -= (1 - first) * (ratio - 1);
  } else {
    cuts.left -= left * (1 / ratio - 1);
    cuts.right -= (1 - left) * (1 / ratio - 1);
  }
}

// Assigns where the picture comes to lie.
void stretch(const Cuts& cuts,
             const MapShape& picture,
             const RenderingRules& rules,
             Augmentation& augmentation) {
  const MapShape& input = rules.input;
  const auto cols = static_cast<double>(picture.cols);
  const auto rows = static_cast<double>(picture.rows);
  augmentation.centre_x = cols * (cuts.left + cuts.width() / 2);
  augmentation.centre_y = rows * (cuts.top + cuts.height() / 2);
  augmentation.x_per_col = cols * cuts.width() / static_cast<double>(input.cols);
  augmentation.y_per_row = rows * cuts.height() / static_cast<double>(input.rows);
  augmentation.outside = rules.augmentation.top_left ? kOutsideAtTopLeft : kOutsideOfPicture;
}

// Where the four pictures of a mosaic meet.
struct MosaicCorner {
  Index row = 0;
  Index col = 0;
};

MosaicCorner mosaic_corner(const MapShape& input, const AugmentationDraws& draws) {
  const auto between = [&](Index size, Draw draw) {
    return draws.whole(size / 5, size - size / 5, draw);
  };
  return {between(input.rows, Draw::MosaicRow), between(input.cols, Draw::MosaicCol)};
}

// Moves a picture on the input so that a corner of it lies where the four meet: what was added to
// its sides there is left out, as far as cells of the input are left to show.
void move_to_corner(const Cuts& cuts,
                    const MosaicCorner& corner,
                    int number,
                    const MapShape& input,
                    Augmentation& augmentation) {
  const bool left_half = number % 2 == 0;
  const bool upper_half = number < 2;
  const double before = augmentation.mirrored ? cuts.right : cuts.left;
  const double behind = augmentation.mirrored ? cuts.left : cuts.right;
  // By how many cells it moves to the left or up, of one dimension.
  const auto moved = [](bool first, double cut, double length, Index size, Index at) {
    const double added = std::max(0.0, -cut / length) * static_cast<double>(size);
    return first ? static_cast<double>(size - at) - std::min(static_cast<double>(size - at), added)
                 : std::min(static_cast<double>(at), added) - static_cast<double>(at);
  };
  const double cols =
      moved(left_half, left_half ? behind : before, cuts.width(), input.cols, corner.col);
  const double rows =
      moved(upper_half, upper_half ? cuts.bottom : cuts.top, cuts.height(), input.rows, corner.row);
  augmentation.centre_x += augmentation.x_per_col * (augmentation.mirrored ? -cols : cols);
  augmentation.centre_y += augmentation.y_per_row * rows;
}

constexpr int kQuarters = 4;

// What an input is made of: its first pictures are those of the mosaic, where it has one.
struct Composition {
  bool mosaic = false;
  bool mixup = false;

  [[nodiscard]] bool is_quarter(int number) const { return mosaic && number < kQuarters; }
};

Composition composition_at(const RenderingRules& rules, const AugmentationDraws& draws) {
  const partitioner::AugmentationOptions& options = rules.augmentation;
  const bool mosaic = options.mosaic && draws.between(0, 1, Draw::Mosaic) < options.mosaic_share;
  const bool over_mosaic = mosaic && draws.between(0, 1, Draw::Mixup) < options.mixup_share;
  return {mosaic, options.mixup && (options.mosaic ? over_mosaic : draws.coin(Draw::Mixup))};
}

}  // namespace

int pictures_at(const RenderingRules& rules, std::uint64_t seed, Index epoch, Index place) {
  const Composition made = composition_at(rules, AugmentationDraws(seed, epoch, place));
  return (made.mosaic ? kQuarters : 1) + (made.mixup ? 1 : 0);
}

Index joining_item(std::uint64_t seed, Index epoch, Index place, int number, Index size) {
  return AugmentationDraws(seed, epoch, place, number).whole(0, size - 1, Draw::Item);
}

PictureWindow window_at(
    const RenderingRules& rules, std::uint64_t seed, Index epoch, Index place, int number) {
  const MapShape& input = rules.input;
  const AugmentationDraws draws(seed, epoch, place);
  const Composition made = composition_at(rules, draws);
  const float share = made.mixup ? 0.5F : 1;
  if (!made.is_quarter(number)) {
    return {{0, input.rows}, {0, input.cols}, share};
  }
  const MosaicCorner corner = mosaic_corner(input, draws);
  return {number < 2 ? Range{0, corner.row} : Range{corner.row, input.rows},
          number % 2 == 0 ? Range{0, corner.col} : Range{corner.col, input.cols},
          share};
}

Augmentation place_picture(const RenderingRules& rules,
                           const MapShape& picture,
                           std::uint64_t seed,
                           Index epoch,
                           Index place,
                           int number) {
  const AugmentationDraws draws(seed, epoch, place, number);
  Cuts cuts = draw_cuts(rules, draws);
  Augmentation augmentation;
  draw_flip_and_colours(rules, draws, augmentation);
  if (rules.augmentation.letter_box) {
    add_bars(rules, picture, augmentation.mirrored, cuts);
  }
  stretch(cuts, picture, rules, augmentation);
  const AugmentationDraws of_input(seed, epoch, place);
  if (composition_at(rules, of_input).is_quarter(number)) {
    move_to_corner(cuts, mosaic_corner(rules.input, of_input), number, rules.input, augmentation);
  }
  return augmentation;
}

Augmentation whole_picture(const RenderingRules& rules, const MapShape& picture) {
  Cuts cuts;
  Augmentation augmentation;
  if (rules.augmentation.letter_box) {
    add_bars(rules, picture, false, cuts);
  }
  stretch(cuts, picture, rules, augmentation);
  return augmentation;
}

PicturePlace place_on_picture(const PicturePlace& on_input,
                              const Augmentation& augmentation,
                              const MapShape& picture,
                              const RenderingRules& rules) {
  const double col = (on_input.x - 0.5) * static_cast<double>(rules.input.cols);
  const double row = (on_input.y - 0.5) * static_cast<double>(rules.input.rows);
  return {
      (augmentation.centre_x + col * augmentation.x_per_col) / static_cast<double>(picture.cols),
      (augmentation.centre_y + row * augmentation.y_per_row) / static_cast<double>(picture.rows)};
}

std::vector<Box> boxes_on_input(std::span<const Box> boxes,
                                const Augmentation& augmentation,
                                const MapShape& picture,
                                const RenderingRules& rules) {
  const auto cols = static_cast<double>(rules.input.cols);
  const auto rows = static_cast<double>(rules.input.rows);
  std::vector<Box> moved;
  moved.reserve(boxes.size());
  for (const Box& box : boxes) {
    const double x = static_cast<double>(picture.cols) * static_cast<double>(box.centre_x);
    const double y = static_cast<double>(picture.rows) * static_cast<double>(box.centre_y);
    const double col = (x - augmentation.centre_x) / augmentation.x_per_col / cols;
    const double row = (y - augmentation.centre_y) / augmentation.y_per_row / rows;
    const double width =
        static_cast<double>(picture.cols) * static_cast<double>(box.width) / augmentation.x_per_col;
    const double height = static_cast<double>(picture.rows) * static_cast<double>(box.height) /
                          augmentation.y_per_row;
    moved.push_back({box.label,
                     static_cast<float>(0.5 + (augmentation.mirrored ? -col : col)),
                     static_cast<float>(0.5 + row),
                     static_cast<float>(width / cols),
                     static_cast<float>(height / rows),
                     box.ignored});
  }
  return moved;
}

std::vector<Box> boxes_within(std::span<const Box> boxes,
                              const PictureWindow& window,
                              const RenderingRules& rules) {
  constexpr float kLeastSide = 0.001F;
  // Centre and size of what is left between two bounds.
  struct Length {
    float centre = 0;
    float size = 0;
  };
  const auto cut = [](float centre, float size, const Range& cells, Index all) {
    const auto least = static_cast<float>(cells.begin) / static_cast<float>(all);
    const auto most = static_cast<float>(cells.end) / static_cast<float>(all);
    const float begin = std::max(centre - size / 2, least);
    const float end = std::min(centre + size / 2, most);
    return Length{begin + (end - begin) / 2, end - begin};
  };
  std::vector<Box> left;
  for (const Box& box : boxes) {
    const Length across = cut(box.centre_x, box.width, window.cols, rules.input.cols);
    const Length down = cut(box.centre_y, box.height, window.rows, rules.input.rows);
    if (across.size >= kLeastSide && down.size >= kLeastSide) {
      left.push_back({box.label, across.centre, down.centre, across.size, down.size});
    }
  }
  return left;
}

}  // namespace tessera::engine
