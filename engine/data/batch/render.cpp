#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/data/batch/augment.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// The two cells that a coordinate lies between, and how far it is on the way from one to the other.
struct Between {
  Index first = 0;
  Index second = 0;
  float share = 0;
  bool inside = false;
};

// One side of a picture: how many pixels it has, and how those lie that are held of them.
struct Side {
  Index size = 0;
  Index held = 0;
  double lead = 0;  // pixels by which the first held one sticks out
  double held_per_pixel = 1;
};

// Within half a cell of the edge there is one neighbour only, which then counts for both.
Between between(double coordinate, const Side& side) {
  if (!(coordinate >= 0 && coordinate <= static_cast<double>(side.size))) {
    return {};
  }
  const double from_centre = (coordinate + side.lead) * side.held_per_pixel - 0.5;
  auto first = static_cast<Index>(from_centre);  // rounds up below 0, where floor() is a slow call
  if (from_centre < static_cast<double>(first)) {
    --first;
  }
  return {std::max<Index>(first, 0),
          std::min(first + 1, side.held - 1),
          static_cast<float>(from_centre - static_cast<double>(first)),
          true};
}

// Where a cell of the input lies in the picture; the same for all channels.
struct Place {
  Between row;
  Between col;
};

class Sampler {
 public:
  Sampler(const Picture& picture,
          const Augmentation& augmentation,
          const partitioner::MapShape& input)
      : picture_(picture),
        augmentation_(augmentation),
        input_(input),
        rows_{picture.shape.rows,
              picture.held_rows,
              static_cast<double>(picture.lead_rows),
              1 / static_cast<double>(picture.reduction)},
        cols_{picture.shape.cols,
              picture.held_cols,
              static_cast<double>(picture.lead_cols),
              1 / static_cast<double>(picture.reduction)} {}

  // Assigns the places of the cells of `cols` in `row`. Where the picture is not turned, its
  // columns are the same in each row, and those that `places` has from another row stay.
  void place_row(Index row, const Range& cols, std::vector<Place>& places) const {
    const bool turned = augmentation_.x_per_row != 0 || augmentation_.y_per_col != 0;
    if (!turned && !places.empty()) {
      const Between there = place(row, cols.begin).row;
      for (Place& each : places) {
        each.row = there;
      }
      return;
    }
    places.clear();
    for (Index col = cols.begin; col < cols.end; ++col) {
      places.push_back(place(row, col));
    }
  }

  // A share of 0 gives the cell's own value exactly.
  [[nodiscard]] float value(Index channel, const Place& place) const {
    if (!place.row.inside || !place.col.inside) {
      return augmentation_.outside;
    }
    const auto between_cols = [&](Index row) {
      const float left = picture_.value(channel, row, place.col.first);
      const float right = picture_.value(channel, row, place.col.second);
      return left + (right - left) * place.col.share;
    };
    const float upper = between_cols(place.row.first);
    const float lower = between_cols(place.row.second);
    return upper + (lower - upper) * place.row.share;
  }

 private:
  [[nodiscard]] Place place(Index row, Index col) const {
    const Index shown = augmentation_.mirrored ? input_.cols - 1 - col : col;
    const double across = static_cast<double>(shown) + 0.5 - static_cast<double>(input_.cols) / 2;
    const double down = static_cast<double>(row) + 0.5 - static_cast<double>(input_.rows) / 2;
    const double x =
        augmentation_.centre_x + augmentation_.x_per_col * across + augmentation_.x_per_row * down;
    const double y =
        augmentation_.centre_y + augmentation_.y_per_col * across + augmentation_.y_per_row * down;
    return {between(y, rows_), between(x, cols_)};
  }

  const Picture& picture_;
  const Augmentation& augmentation_;
  const partitioner::MapShape& input_;
  Side rows_;
  Side cols_;
};

using Channels3 = std::array<float, 3>;  // red, green and blue, or hue, saturation and value

// The hexcone model (Smith, "Color gamut transform pairs", SIGGRAPH 1978): hue in turns,
// saturation, value.
Channels3 hsv_of_rgb(const Channels3& rgb) {
  const float most = std::max({rgb[0], rgb[1], rgb[2]});
  const float least = std::min({rgb[0], rgb[1], rgb[2]});
  const float span = most - least;
  if (span <= 0) {
    return {0, 0, most};
  }
  float sixths = 0;
  if (most == rgb[0]) {
    sixths = (rgb[1] - rgb[2]) / span;
  } else if (most == rgb[1]) {
    sixths = 2 + (rgb[2] - rgb[0]) / span;
  } else {
    sixths = 4 + (rgb[0] - rgb[1]) / span;
  }
  return {sixths / 6, span / most, most};
}

Channels3 rgb_of_hsv(const Channels3& hsv) {
  const float sixths = 6 * (hsv[0] - std::floor(hsv[0]));
  const float value = hsv[2];
  Channels3 rgb{};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    constexpr std::array<float, 3> kOffset = {5, 3, 1};
    float from_hue = kOffset[channel] + sixths;
    from_hue -= 6 * std::floor(from_hue / 6);
    const float strength = std::clamp(std::min(from_hue, 4 - from_hue), 0.0F, 1.0F);
    rgb[channel] = value - value * hsv[1] * strength;
  }
  return rgb;
}

bool changes_colours(const Augmentation& augmentation) {
  return augmentation.hue != 0 || augmentation.saturation != 1 || augmentation.exposure != 1;
}

Channels3 distorted(const Channels3& rgb, const Augmentation& augmentation) {
  Channels3 hsv = hsv_of_rgb(rgb);
  hsv[0] += augmentation.hue;
  hsv[1] *= augmentation.saturation;
  hsv[2] *= augmentation.exposure;
  Channels3 result = rgb_of_hsv(hsv);
  for (float& value : result) {
    value = std::clamp(value, 0.0F, 1.0F);
  }
  return result;
}

float number_for(const std::vector<float>& numbers, Index channel, float otherwise) {
  const auto at = std::min(static_cast<std::size_t>(channel), numbers.size() - 1);
  return numbers.empty() ? otherwise : numbers[at];
}

// What becomes of a value at the end: (value - shift) * scale for each channel.
struct Finish {
  std::vector<float> shift;
  std::vector<float> scale;
};

Finish finish_of(const RenderingRules& rules) {
  ChannelValues values = channel_values(rules);
  for (float& number : values.stddev) {
    number = 1 / number;
  }
  return {std::move(values.mean), std::move(values.stddev)};
}

}  // namespace

ChannelValues channel_values(const RenderingRules& rules) {
  const bool given = !rules.convention.mean.empty() || !rules.convention.stddev.empty();
  const bool to_both_sides = !given && rules.crop && !rules.crop->noadjust;
  ChannelValues values;
  for (Index channel = 0; channel < rules.input.channels; ++channel) {
    values.mean.push_back(number_for(rules.convention.mean, channel, to_both_sides ? 0.5F : 0.0F));
    values.stddev.push_back(
        number_for(rules.convention.stddev, channel, to_both_sides ? 0.5F : 1.0F));
  }
  return values;
}

void render(const Picture& picture,
            const Augmentation& augmentation,
            const RenderingRules& rules,
            const Region& region,
            std::span<float> out) {
  const partitioner::MapShape& input = rules.input;
  const Index area = region.rows.size() * region.cols.size();
  expects(contains(Region{region.images, {0, input.channels}, {0, input.rows}, {0, input.cols}},
                   region),
          "a rendered region lies inside the input");
  expects(static_cast<Index>(out.size()) == region.channels.size() * area,
          "the output has the region's size");
  expects(picture.shape.channels == input.channels, "pictures have the input's channels");
  const Sampler sampler(picture, augmentation, input);
  const Finish finish = finish_of(rules);
  const bool colours = input.channels == 3 && changes_colours(augmentation);
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(region.cols.size()));
  float* row_out = out.data();
  for (Index row = region.rows.begin; row < region.rows.end; ++row, row_out += region.cols.size()) {
    sampler.place_row(row, region.cols, places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      Channels3 colour{};
      if (colours) {
        colour = distorted(
            {sampler.value(0, places[i]), sampler.value(1, places[i]), sampler.value(2, places[i])},
            augmentation);
      }
      for (Index channel = region.channels.begin; channel < region.channels.end; ++channel) {
        const auto at = static_cast<std::size_t>(channel);
        const float value = colours ? colour[at] : sampler.value(channel, places[i]);
        row_out[(channel - region.channels.begin) * area + static_cast<Index>(i)] =
            (value - finish.shift[at]) * finish.scale[at];
      }
    }
  }
}

}  // namespace tessera::engine
