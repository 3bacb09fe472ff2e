
#include "engine/data/pictures/captioned_picture.h"

#include <doctest/doctest.h>

namespace tessera::engine {
namespace {

// Of one byte.
Picture plain(Index channels, Index rows, Index cols, std::uint8_t value) {
  const std::vector<std::uint8_t> planes(static_cast<std::size_t>(channels * rows * cols), value);
  return picture_of_planes(planes, {channels, rows, cols}, channels);
}

// What the PNG file shows.
Picture drawn(const Picture& picture, const std::string& caption) {
  const std::vector<std::byte> file = captioned_picture(picture, caption).png;
  return decode_picture(
      {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "drawn.png", 3);
}

// Dark pixels of rows from `begin` on.
Index ink(const Picture& picture, Index begin) {
  Index count = 0;
  for (Index row = begin; row < picture.held_rows; ++row) {
    for (Index col = 0; col < picture.held_cols; ++col) {
      count += picture.value(0, row, col) < 0.3F ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("a small picture is enlarged and keeps its values, the caption stands below") {
  // (C, H, W), top right all red.
  const std::vector<std::uint8_t> planes{50, 255, 50, 50, 50, 0, 50, 50, 50, 0, 50, 50};
  const Picture png = drawn(picture_of_planes(planes, {3, 2, 2}, 3), "cup 93 %");
  const Index side = 320;
  CHECK(png.held_cols == side);
  CHECK(png.held_rows > side);
  CHECK(png.value(0, 0, 0) == 50.0F / 255);
  CHECK(png.value(0, 0, side - 1) == 1);
  CHECK(png.value(1, side / 2 - 1, side / 2) == 0);
  CHECK(png.value(1, side / 2, side / 2) == 50.0F / 255);
  CHECK(ink(png, side) > 50);
}

TEST_CASE("a caption is never cut: there is paper around it on pictures of any shape") {
  const std::string name =
      "Scottish deerhound, Scottish greyhound or rough-haired deerhound  12.3 %";
  for (const auto& [rows, cols] : std::vector<std::pair<Index, Index>>{
           {28, 28}, {1, 1}, {500, 20}, {20, 500}, {1024, 1024}, {3000, 40}, {224, 224}}) {
    const Picture png = drawn(plain(3, rows, cols, 100), name);
    CHECK(png.held_cols >= 320);
    CHECK(ink(png, 0) > 100);
    for (Index row = 0; row < png.held_rows; ++row) {
      CHECK(png.value(0, row, png.held_cols - 1) != 0);
    }
    for (Index col = 0; col < png.held_cols; ++col) {
      CHECK(png.value(0, png.held_rows - 1, col) == 1);
    }
  }
}

TEST_CASE("a caption grows with its picture") {
  const Picture small = drawn(plain(3, 320, 320, 100), "cup 93 %");
  const Picture large = drawn(plain(3, 960, 960, 100), "cup 93 %");
  CHECK(large.held_rows - 960 > 2 * (small.held_rows - 320));
}

TEST_CASE("a large picture is reduced") {
  const Picture png = drawn(plain(3, 1500, 3001, 150), "");
  CHECK(png.held_cols <= 1024);
  CHECK(png.held_rows <= 1024);
  CHECK(png.value(2, 0, 0) == 150.0F / 255);
}

TEST_CASE("a grey picture is drawn in grey") {
  const Picture png = drawn(plain(1, 300, 300, 100), "x");
  CHECK(png.value(0, 0, 0) == png.value(1, 0, 0));
  CHECK(png.value(0, 0, 0) == png.value(2, 0, 0));
}

TEST_CASE("any text makes a caption") {
  for (const std::string& caption : {std::string("K\xc3\xa4se 12 %"),
                                     std::string("\x1b[2J\n\t"),
                                     std::string("\xff\xfe\x80"),
                                     std::string(10000, 'W'),
                                     std::string(10000, '\xc3'),
                                     std::string("~}|{`_^]\\[@?>=<;:/")}) {
    const Picture png = drawn(plain(3, 8, 8, 100), caption);
    CHECK(png.held_cols == 320);
    CHECK(png.held_rows < 640);
  }
}

}  // namespace tessera::engine
