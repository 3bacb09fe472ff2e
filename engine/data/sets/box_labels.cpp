#include "engine/data/sets/box_labels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/data/text/read_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr float kRounding = 0.001F;
constexpr Index kLabelNumbers = 5;
constexpr Index kLeastPolygonNumbers = 7;

// Sets what is outside of 0..1 by rounding to the bound; false where it is outside by more.
bool settle(float& fraction) {
  if (!(fraction >= -kRounding && fraction <= 1 + kRounding)) {
    return false;
  }
  fraction = std::clamp(fraction, 0.0F, 1.0F);
  return true;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(" \t"); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(" \t", end);
  }
  return words;
}

// What a line may be, for messages.
std::string expected_numbers(const LabelLines& lines) {
  const std::string box = "five numbers (class x y width height)";
  return lines.pose_numbers > 0
             ? fmt::format("{} or, with the keypoints of kpt_shape, {}", box, lines.pose_numbers)
         : lines.polygons ? box + " or those of a polygon (class, x and y of 3 corners or more)"
                          : box;
}

// The numbers after the class; nothing where a word is none.
std::optional<std::vector<float>> numbers_after_class(const std::vector<std::string_view>& words) {
  std::vector<float> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::optional<float> number = parsed_number<float>(words[i]);
    if (!number) {
      return std::nullopt;
    }
    numbers.push_back(*number);
  }
  return numbers;
}

// The box around corners x, y, x, y, ..., which may lie outside the picture. Where one is not
// finite, its number is that of the box.
Box box_around(std::vector<float> corners) {
  constexpr float kFar = std::numeric_limits<float>::max();
  std::array<float, 2> least{kFar, kFar};
  std::array<float, 2> most{-kFar, -kFar};
  for (std::size_t i = 0; i < corners.size(); ++i) {
    if (!std::isfinite(corners[i])) {
      return {0, corners[i], 0, 0, 0};
    }
    (void)settle(corners[i]);
    least[i % 2] = std::min(least[i % 2], corners[i]);
    most[i % 2] = std::max(most[i % 2], corners[i]);
  }
  const auto [left, top] = least;
  const auto [right, bottom] = most;
  return {0, (left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
}

// One line of label text, added to `read`.
void read_label_line(std::string_view line,
                     const std::string& where,
                     int classes,
                     const LabelLines& lines,
                     ReadBoxes& read,
                     DifferentBoxes& boxes) {
  const auto bad = [&](DataFault fault, std::string what) {
    read.problems.push_back({fault, where, std::move(what)});
  };
  const std::vector<std::string_view> words = words_of(line);
  const Index count = std::ssize(words);
  const bool is_pose = lines.pose_numbers > 0 && count == lines.pose_numbers;
  const bool is_polygon =
      lines.polygons && lines.pose_numbers == 0 && count >= kLeastPolygonNumbers && count % 2 == 1;
  if (count != kLabelNumbers && !is_pose && !is_polygon) {
    bad(DataFault::BadLabel,
        fmt::format("expected {}, found {}", expected_numbers(lines), counted(count, "word")));
    return;
  }
  const std::optional<Index> label = parsed_number<Index>(words[0]);
  const std::optional<std::vector<float>> numbers = numbers_after_class(words);
  if (!label || !numbers) {
    bad(DataFault::BadLabel,
        fmt::format("expected a class, counted from 0, and {} as numbers",
                    is_polygon ? "x and y of each corner" : "x, y, width and height"));
    return;
  }
  if (*label < 0 || *label >= classes) {
    bad(DataFault::OutOfRange,
        fmt::format("class {}: there are {} classes, counted from 0", *label, classes));
    return;
  }
  Box box = is_polygon ? box_around(*numbers)
                       : Box{0, (*numbers)[0], (*numbers)[1], (*numbers)[2], (*numbers)[3]};
  box.label = static_cast<int>(*label);
  read.polygons += is_polygon ? 1 : 0;
  add_object(box, where, "", boxes, read);
}

}  // namespace

std::string unusable_box(Box& box) {
  for (const auto& [name, value] : {std::pair{"x", box.centre_x},
                                    std::pair{"y", box.centre_y},
                                    std::pair{"width", box.width},
                                    std::pair{"height", box.height}}) {
    if (!std::isfinite(value)) {
      return fmt::format("{} is {}: expected a fraction of the picture", name, value);
    }
  }
  for (const auto& [name, value] : {std::pair{"x", &box.centre_x}, std::pair{"y", &box.centre_y}}) {
    const float before = *value;
    if (!settle(*value)) {
      return fmt::format(
          "{} of the centre is {}: it lies outside the picture, which is from 0 to 1",
          name,
          before);
    }
  }
  for (const auto& [name, value] :
       {std::pair{"width", &box.width}, std::pair{"height", &box.height}}) {
    const float before = *value;
    if (before <= 0 || !settle(*value)) {
      return fmt::format(
          "a {} of {}: expected more than 0 and at most 1, the whole picture", name, before);
    }
  }
  return {};
}

void add_object(Box box,
                const std::string& where,
                const std::string& prefix,
                DifferentBoxes& boxes,
                ReadBoxes& read) {
  const std::string why = unusable_box(box);
  const bool added = why.empty() && boxes.add(box);
  if (!added && !box.ignored) {
    read.problems.push_back({why.empty() ? DataFault::SameBox : DataFault::BadLabel,
                             where,
                             prefix + (why.empty() ? "the same object again" : why)});
  }
}

fs::path label_path(const fs::path& picture) {
  std::vector<fs::path> parts(picture.begin(), picture.end());
  const auto is_pictures = [](const fs::path& part) {
    return part == "images" || part == "JPEGImages";
  };
  // The file itself is none of them.
  const auto found =
      parts.empty() ? parts.rend() : std::find_if(parts.rbegin() + 1, parts.rend(), is_pictures);
  fs::path beside = picture;
  beside.replace_extension(".txt");
  if (found == parts.rend()) {
    return beside;
  }
  *found = "labels";
  fs::path path;
  for (const fs::path& part : parts) {
    path /= part;
  }
  path.replace_extension(".txt");
  return !is_there(path) && is_there(beside) ? beside : path;
}

ReadBoxes read_label_text(const fs::path& file, int classes, const LabelLines& lines) {
  ReadBoxes read;
  DifferentBoxes boxes(read.boxes);
  try {
    const TextLines text(file, "a file of labels");
    for (Index i = 0; i < text.size(); ++i) {
      read_label_line(text.text(i),
                      fmt::format("{}:{}", file.string(), text.number(i)),
                      classes,
                      lines,
                      read,
                      boxes);
    }
  } catch (const InputError& error) {
    read.problems.push_back({DataFault::BadLabel, "", error.what()});
  }
  return read;
}

ClassNumbers numbers_of(const std::vector<std::string>& class_names) {
  ClassNumbers numbers;
  for (std::size_t i = 0; i < class_names.size(); ++i) {
    numbers.emplace(class_names[i], static_cast<int>(i));
  }
  return numbers;
}

ReadBoxes boxes_of_voc(const VocAnnotation& annotation,
                       const ClassNumbers& classes,
                       const fs::path& file) {
  ReadBoxes read;
  read.problems = annotation.problems;
  read.width = annotation.width;
  read.height = annotation.height;
  DifferentBoxes boxes(read.boxes);
  for (const VocObject& object : annotation.objects) {
    const std::string where = fmt::format("{}:{}", file.string(), object.line);
    const auto label = classes.find(object.name);
    if (label == classes.end()) {
      read.problems.push_back(
          {DataFault::OutOfRange,
           where,
           fmt::format(
               "{} is none of the {} classes", printable_start(object.name), classes.size())});
      continue;
    }
    if (annotation.width == 0) {
      continue;
    }
    const Box box{label->second,
                  static_cast<float>(((object.left + object.right) / 2 - 1) / annotation.width),
                  static_cast<float>(((object.top + object.bottom) / 2 - 1) / annotation.height),
                  static_cast<float>((object.right - object.left) / annotation.width),
                  static_cast<float>((object.bottom - object.top) / annotation.height),
                  object.difficult};
    add_object(box, where, "", boxes, read);
  }
  return read;
}

}  // namespace tessera::engine
