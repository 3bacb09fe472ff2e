#include "engine/drawing/label.h"

#include <doctest/doctest.h>

namespace tessera::engine {
namespace {

constexpr Colour kGround{90, 140, 90};
constexpr Colour kPaper{200, 30, 30};

// Whether all pixels that are not of the ground lie in one of these.
bool only_inside(const RgbPicture& picture, const std::vector<Rectangle>& boxes) {
  for (Index row = 0; row < picture.rows(); ++row) {
    for (Index col = 0; col < picture.cols(); ++col) {
      bool inside = false;
      for (const Rectangle& box : boxes) {
        inside =
            inside || (contains(box.rows, {row, row + 1}) && contains(box.cols, {col, col + 1}));
      }
      if (!inside && picture.at(row, col) != kGround) {
        return false;
      }
    }
  }
  return true;
}

Index count(const RgbPicture& picture, const Rectangle& box, Colour colour) {
  Index number = 0;
  for (Index row = box.rows.begin; row < box.rows.end; ++row) {
    for (Index col = box.cols.begin; col < box.cols.end; ++col) {
      number += picture.at(row, col) == colour ? 1 : 0;
    }
  }
  return number;
}

bool on_picture(const RgbPicture& picture, const Rectangle& box) {
  return contains(Range{0, picture.rows()}, box.rows) &&
         contains(Range{0, picture.cols()}, box.cols);
}

// Whether the outermost pixels of a label are all paper: no letter touches its border.
bool has_margin(const RgbPicture& picture, const Rectangle& label) {
  const auto [rows, cols] = label;
  const std::vector<Rectangle> edges{{{rows.begin, rows.begin + 1}, cols},
                                     {{rows.end - 1, rows.end}, cols},
                                     {rows, {cols.begin, cols.begin + 1}},
                                     {rows, {cols.end - 1, cols.end}}};
  for (const Rectangle& edge : edges) {
    if (count(picture, edge, kPaper) != edge.rows.size() * edge.cols.size()) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("a label changes the pixels of its box and no other") {
  RgbPicture picture(100, 300, kGround);
  const Rectangle label = draw_label(picture, "dog 93 %", 20, 30, {kPaper, 20});
  CHECK(label.rows.begin == 20);
  CHECK(label.cols.begin == 30);
  CHECK(only_inside(picture, {label}));
  CHECK(count(picture, label, kGround) == 0);
  CHECK(count(picture, label, kWhite) > 30);
  CHECK(has_margin(picture, label));
}

TEST_CASE("a label is moved into the picture, and never cut by its border") {
  for (const Index row : {-50, -1, 0, 60, 99, 500}) {
    for (const Index col : {-50, -1, 0, 250, 299, 9000}) {
      RgbPicture picture(100, 300, kGround);
      const Rectangle label = draw_label(picture, "K\u00e4se 93 %", row, col, {kPaper, 20});
      RgbPicture whole(500, 500, kGround);
      const Rectangle elsewhere = draw_label(whole, "K\u00e4se 93 %", 0, 0, {kPaper, 20});
      CHECK(on_picture(picture, label));
      CHECK(label.rows.size() == elsewhere.rows.size());
      CHECK(label.cols.size() == elsewhere.cols.size());
      CHECK(count(picture, label, kWhite) == count(whole, elsewhere, kWhite));
      CHECK(only_inside(picture, {label}));
    }
  }
}

TEST_CASE("a label wider than the picture is shortened until it fits") {
  RgbPicture picture(100, 120, kGround);
  const Rectangle label =
      draw_label(picture, std::string(300, 'W') + " 93 %", 40, 60, {kPaper, 20});
  CHECK(on_picture(picture, label));
  CHECK(has_margin(picture, label));
  CHECK(count(picture, label, kWhite) > 30);
}

TEST_CASE("a picture of a pixel can be drawn on") {
  RgbPicture picture(1, 1, kGround);
  CHECK(on_picture(picture, draw_label(picture, "dog", 0, 0, {kPaper, 20})));
  CHECK(on_picture(picture, draw_labelled_box(picture, {{-5, 5}, {-5, 5}}, "dog", {kPaper, 20})));
}

TEST_CASE("the label of a box stands above it, or inside where there is no room") {
  const LabelStyle style{kPaper, 20};
  RgbPicture picture(200, 300, kGround);
  const Rectangle box{{100, 150}, {40, 200}};
  const Rectangle label = draw_labelled_box(picture, box, "dog 0.93", style);
  CHECK(label.rows.end == box.rows.begin);
  CHECK(label.cols.begin == box.cols.begin);
  CHECK(only_inside(picture, {box, label}));
  CHECK(picture.at(149, 40) == kPaper);
  CHECK(picture.at(125, 120) == kGround);

  RgbPicture other(200, 300, kGround);
  const Rectangle high{{5, 150}, {40, 200}};
  const Rectangle inside = draw_labelled_box(other, high, "dog 0.93", style);
  CHECK(inside.rows.begin == high.rows.begin);
  CHECK(only_inside(other, {high}));
}

TEST_CASE("a box reaching outside of the picture has a label inside") {
  RgbPicture picture(200, 300, kGround);
  const Rectangle label =
      draw_labelled_box(picture, {{-40, 400}, {-30, 900}}, "cat 0.5", {kPaper, 20});
  CHECK(on_picture(picture, label));
  CHECK(has_margin(picture, label));
}

}  // namespace tessera::engine
