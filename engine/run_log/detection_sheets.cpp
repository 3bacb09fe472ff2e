#include "engine/run_log/detection_sheets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "engine/drawing/label.h"
#include "engine/train/classification_report.h"
#include "engine/train/detection_report.h"

namespace tessera::engine {

namespace {

constexpr Index kSheetPictures = 4;
constexpr Index kSheetColumns = 2;
constexpr Index kPictureSide = 320;
constexpr Index kSheetGap = 4;
constexpr Index kTextHeight = 14;
constexpr Index kLabelRows = kTextHeight + 4;
constexpr Index kFoundThickness = 3;
constexpr Index kCaptionRows = 22;
constexpr Colour kPaper{32, 32, 32};
constexpr Colour kFoundColour{230, 159, 0};

// In pixels of the network's input.
struct NamedBox {
  PixelBox box;
  std::string text;
};

struct SheetPicture {
  Index pass = 0;      // of the source, from 0
  Index position = 0;  // in its batch
  std::vector<NamedBox> objects = {};
  std::vector<NamedBox> found = {};  // the best last
};

std::string name_of_class(const BatchSource& source, Index label) {
  return class_name(source.dataset().class_names(), static_cast<std::size_t>(label));
}

// The values of one image as they came from pictures, (C, H, W), 0 to 1.
std::vector<float> image_values(const BatchSource& source, const SheetPicture& picture) {
  const partitioner::MapShape& input = source.rules(picture.pass).input;
  const Region region{.images = {picture.position, picture.position + 1},
                      .channels = {0, input.channels},
                      .rows = {0, input.rows},
                      .cols = {0, input.cols}};
  std::vector<float> values(static_cast<std::size_t>(region.volume()));
  (void)source.read_region(picture.pass, region, values);
  const ChannelValues scaling = channel_values(source.rules(picture.pass));
  const auto cells = static_cast<std::size_t>(input.rows * input.cols);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t channel = i / cells;
    values[i] = std::clamp(values[i] * scaling.stddev[channel] + scaling.mean[channel], 0.0F, 1.0F);
  }
  return values;
}

// The cells that a pixel stands for.
Range cells_of(Index pixel, Index pixels, Index cells) {
  const Index begin = pixel * cells / pixels;
  return {begin, std::max(begin + 1, (pixel + 1) * cells / pixels)};
}

std::uint8_t mean_of_cells(std::span<const float> channel,
                           Index cells_in_row,
                           const Range& rows,
                           const Range& cols) {
  float sum = 0;
  for (Index row = rows.begin; row < rows.end; ++row) {
    for (Index col = cols.begin; col < cols.end; ++col) {
      sum += channel[static_cast<std::size_t>(row * cells_in_row + col)];
    }
  }
  const auto count = static_cast<float>(rows.size() * cols.size());
  return static_cast<std::uint8_t>(std::lround(255 * sum / count));
}

RgbPicture drawn_image(const std::vector<float>& values, const partitioner::MapShape& input) {
  const Index longest = std::max(input.rows, input.cols);
  RgbPicture drawn(std::max<Index>(1, input.rows * kPictureSide / longest),
                   std::max<Index>(1, input.cols * kPictureSide / longest),
                   kPaper);
  const Index plane = input.rows * input.cols;
  for (Index row = 0; row < drawn.rows(); ++row) {
    for (Index col = 0; col < drawn.cols(); ++col) {
      for (Index colour = 0; colour < 3; ++colour) {
        const Index channel = std::min(colour, input.channels - 1);
        drawn.pixel(row, col)[colour] =
            mean_of_cells(std::span(values).subspan(static_cast<std::size_t>(channel * plane),
                                                    static_cast<std::size_t>(plane)),
                          input.cols,
                          cells_of(row, drawn.rows(), input.rows),
                          cells_of(col, drawn.cols(), input.cols));
      }
    }
  }
  return drawn;
}

// Wherever the box lies, and whatever its numbers are.
Rectangle drawn_place(const PixelBox& box,
                      const RgbPicture& drawn,
                      const partitioner::MapShape& input) {
  const auto at = [](double place, Index cells, Index pixels) {
    const double scaled = place * static_cast<double>(pixels) / static_cast<double>(cells);
    const auto most = static_cast<double>(pixels);
    return static_cast<Index>(std::lround(std::isnan(scaled) ? 0 : std::clamp(scaled, 0.0, most)));
  };
  return {
      {at(box.top, input.rows, drawn.rows()), at(box.top + box.height, input.rows, drawn.rows())},
      {at(box.left, input.cols, drawn.cols()), at(box.left + box.width, input.cols, drawn.cols())}};
}

// Narrower than frames of what was found, black and white by turns, so that it is seen on any
// picture.
void draw_dashed(RgbPicture& drawn, const Rectangle& place) {
  constexpr Index kDash = 6;
  constexpr Index kWide = 2;
  for (Index row = place.rows.begin; row < place.rows.end; ++row) {
    for (Index col = place.cols.begin; col < place.cols.end; ++col) {
      const bool across = row < place.rows.begin + kWide || row >= place.rows.end - kWide;
      const bool down = col < place.cols.begin + kWide || col >= place.cols.end - kWide;
      if (across || down) {
        const Index along = across ? col - place.cols.begin : row - place.rows.begin;
        drawn.set(row, col, along / kDash % 2 == 0 ? kWhite : kBlack);
      }
    }
  }
}

RgbPicture drawn_picture(const BatchSource& source, const SheetPicture& picture) {
  const partitioner::MapShape& input = source.rules(picture.pass).input;
  RgbPicture drawn = drawn_image(image_values(source, picture), input);
  // Both kinds of frames are seen where they lie on each other.
  for (const NamedBox& box : picture.found) {
    drawn.outline(drawn_place(box.box, drawn, input), kFoundThickness, kFoundColour);
  }
  for (const NamedBox& object : picture.objects) {
    draw_dashed(drawn, drawn_place(object.box, drawn, input));
  }
  for (const NamedBox& object : picture.objects) {
    const Rectangle place = drawn_place(object.box, drawn, input);
    draw_label(drawn,
               object.text,
               std::max(place.rows.begin, place.rows.end - kLabelRows),
               place.cols.begin,
               {.paper = kBlack, .text_height = kTextHeight});
  }
  for (const NamedBox& box : picture.found) {
    const Rectangle place = drawn_place(box.box, drawn, input);
    draw_label(drawn,
               box.text,
               std::max<Index>(0, place.rows.begin - kLabelRows),
               place.cols.begin,
               {.paper = kFoundColour, .text_height = kTextHeight});
  }
  return drawn;
}

RgbPicture sheet_of(const BatchSource& source,
                    const std::vector<SheetPicture>& pictures,
                    const std::string& caption) {
  const partitioner::MapShape& input = source.options().rules.input;
  const Index longest = std::max(input.rows, input.cols);
  const Index down = std::max<Index>(1, input.rows * kPictureSide / longest) + kSheetGap;
  const Index across = std::max<Index>(1, input.cols * kPictureSide / longest) + kSheetGap;
  const Index count = std::ssize(pictures);
  const Index lines = (count + kSheetColumns - 1) / kSheetColumns;
  RgbPicture sheet(kCaptionRows + std::max<Index>(lines, 1) * down - kSheetGap,
                   std::max<Index>(std::min(count, kSheetColumns), 1) * across - kSheetGap,
                   kPaper);
  draw_label(sheet, caption, 2, 2, {.paper = kPaper, .text_height = kTextHeight});
  for (Index i = 0; i < count; ++i) {
    sheet.paste(drawn_picture(source, pictures[static_cast<std::size_t>(i)]),
                kCaptionRows + i / kSheetColumns * down,
                i % kSheetColumns * across);
  }
  return sheet;
}

}  // namespace

RgbPicture training_sheet(const BatchSource& training, Index step, Index passes) {
  std::vector<SheetPicture> pictures;
  for (Index pass = (step - 1) * passes; pass < step * passes; ++pass) {
    const partitioner::MapShape& input = training.rules(pass).input;
    const auto cols = static_cast<double>(input.cols);
    const auto rows = static_cast<double>(input.rows);
    const Targets targets = training.targets(pass);
    for (Index position = 0; position < std::ssize(targets); ++position) {
      const auto& target = targets[static_cast<std::size_t>(position)];
      if (!target || std::ssize(pictures) == kSheetPictures) {
        continue;
      }
      SheetPicture& picture = pictures.emplace_back(SheetPicture{pass, position});
      for (const TargetBox& box : target->boxes) {
        picture.objects.push_back({{(box.centre_x - box.width / 2) * cols,
                                    (box.centre_y - box.height / 2) * rows,
                                    box.width * cols,
                                    box.height * rows},
                                   name_of_class(training, box.label)});
      }
    }
    if (std::ssize(pictures) == kSheetPictures) {
      break;
    }
  }
  return sheet_of(
      training, pictures, fmt::format("step {}: training pictures as the step saw them", step));
}

RgbPicture test_sheet(const BatchSource& testing, Index step, const DetectionMetrics& metrics) {
  const Index batch = testing.options().batch;
  const auto kept = std::ssize(metrics.shown());
  const Index count = std::min<Index>(kSheetPictures, kept);
  std::vector<SheetPicture> pictures;
  for (Index i = 0; i < count; ++i) {
    const ShownImage& image = metrics.shown()[static_cast<std::size_t>(i * kept / count)];
    SheetPicture picture{image.image / batch, image.image % batch};
    for (const TrueBox& object : image.truth) {
      picture.objects.push_back({object.box, name_of_class(testing, object.label)});
    }
    std::vector<const FoundBox*> found;
    for (const FoundBox& box : image.found) {
      found.push_back(&box);
    }
    std::stable_sort(found.begin(), found.end(), [](const FoundBox* a, const FoundBox* b) {
      return a->score < b->score;
    });
    for (const FoundBox* box : found) {
      picture.found.push_back(
          {box->box,
           fmt::format("{} {:.0f} %", name_of_class(testing, box->label), 100 * box->score)});
    }
    pictures.push_back(std::move(picture));
  }
  return sheet_of(testing,
                  pictures,
                  fmt::format("after step {}: test pictures; dashed: objects, orange: found with "
                              "{} or more",
                              step,
                              kConfidence));
}

}  // namespace tessera::engine
