#include "engine/data/inspection/sample_sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "engine/drawing/label.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr Index kFieldSide = 240;
constexpr Index kFieldsInRow = 5;
constexpr Index kGap = 4;
constexpr Index kNameHeight = 16;

struct NamedColour {
  const char* name;
  Colour colour;
};

constexpr std::array<NamedColour, 10> kBoxColours{{{"red", {230, 30, 40}},
                                                   {"green", {40, 200, 60}},
                                                   {"blue", {60, 110, 255}},
                                                   {"yellow", {255, 225, 25}},
                                                   {"magenta", {240, 50, 230}},
                                                   {"cyan", {70, 240, 240}},
                                                   {"orange", {245, 130, 48}},
                                                   {"lime", {190, 255, 60}},
                                                   {"pink", {250, 190, 212}},
                                                   {"white", {255, 255, 255}}}};

const NamedColour& colour_of(int label) {
  return kBoxColours[static_cast<std::size_t>(label) % kBoxColours.size()];
}

// As large as a field allows.
RgbPicture scaled(const Picture& picture) {
  const Index longest = std::max(picture.shape.rows, picture.shape.cols);
  RgbPicture field(std::max<Index>(1, picture.shape.rows * kFieldSide / longest),
                   std::max<Index>(1, picture.shape.cols * kFieldSide / longest),
                   kBlack);
  for (Index row = 0; row < field.rows(); ++row) {
    for (Index col = 0; col < field.cols(); ++col) {
      std::uint8_t* pixel = field.pixel(row, col);
      for (Index channel = 0; channel < 3; ++channel) {
        const float value = picture.value(std::min(channel, picture.shape.channels - 1),
                                          row * picture.held_rows / field.rows(),
                                          col * picture.held_cols / field.cols());
        pixel[channel] = static_cast<std::uint8_t>(std::lround(value * 255));
      }
    }
  }
  return field;
}

// With the name of its class.
void draw_box(const Box& box, const std::string& name, RgbPicture& field) {
  const auto at = [](float fraction, Index size) {
    const auto place = static_cast<Index>(std::floor(fraction * static_cast<float>(size)));
    return std::clamp<Index>(place, 0, size - 1);
  };
  const Rectangle place{{at(box.centre_y - box.height / 2, field.rows()),
                         at(box.centre_y + box.height / 2, field.rows()) + 1},
                        {at(box.centre_x - box.width / 2, field.cols()),
                         at(box.centre_x + box.width / 2, field.cols()) + 1}};
  draw_labelled_box(
      field, place, name, {.paper = colour_of(box.label).colour, .text_height = kNameHeight});
}

std::string described(const Box& box, const std::string& name) {
  return fmt::format("    {}: {}, {:.3f} {:.3f} {:.3f} {:.3f}\n",
                     colour_of(box.label).name,
                     printable(name),
                     box.centre_x,
                     box.centre_y,
                     box.width,
                     box.height);
}

}  // namespace

SampleSheet sample_sheet(const Dataset& dataset, Index most) {
  const Index shown = std::min(most, dataset.size());
  const Index lines = (shown + kFieldsInRow - 1) / kFieldsInRow;
  const Index in_row = std::min(shown, kFieldsInRow);
  const auto length = [](Index fields) {
    return std::max<Index>(1, fields * (kFieldSide + kGap) - kGap);
  };
  SampleSheet sheet{RgbPicture(length(lines), length(in_row), kBlack), ""};
  for (Index i = 0; i < shown; ++i) {
    const Index item = i * dataset.size() / shown;
    sheet.list += fmt::format("row {}, column {}: {}\n",
                              i / kFieldsInRow + 1,
                              i % kFieldsInRow + 1,
                              printable(dataset.name(item)));
    Picture picture;
    try {
      picture = dataset.read(item, {kFieldSide, kFieldSide});
    } catch (const InputError& error) {
      sheet.list += fmt::format("    {}\n", error.what());
      continue;
    }
    RgbPicture field = scaled(picture);
    for (const Box& box : dataset.boxes(item)) {
      const std::string& name = dataset.class_names()[static_cast<std::size_t>(box.label)];
      draw_box(box, name, field);
      sheet.list += described(box, name);
    }
    sheet.picture.paste(
        field, i / kFieldsInRow * (kFieldSide + kGap), i % kFieldsInRow * (kFieldSide + kGap));
  }
  return sheet;
}

}  // namespace tessera::engine
