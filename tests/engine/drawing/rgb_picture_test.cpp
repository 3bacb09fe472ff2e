#include "engine/drawing/rgb_picture.h"

#include <doctest/doctest.h>

#include "engine/data/pictures/picture.h"

namespace tessera::engine {

TEST_CASE("filling and outlining leave out what is outside of the picture") {
  RgbPicture picture(4, 5, kWhite);
  picture.fill({{-3, 1}, {3, 9}}, kBlack);
  CHECK(picture.at(0, 2) == kWhite);
  CHECK(picture.at(0, 3) == kBlack);
  CHECK(picture.at(0, 4) == kBlack);
  CHECK(picture.at(1, 4) == kWhite);
  picture.fill({{2, 2}, {0, 5}}, kBlack);
  picture.fill({{3, 1}, {0, 5}}, kBlack);
  CHECK(picture.at(2, 0) == kWhite);

  RgbPicture framed(5, 5, kWhite);
  framed.outline({{1, 9}, {-1, 4}}, 1, kBlack);
  CHECK(framed.at(1, 0) == kBlack);
  CHECK(framed.at(4, 3) == kBlack);
  CHECK(framed.at(2, 0) == kWhite);
  CHECK(framed.at(4, 0) == kWhite);
  CHECK(framed.at(0, 0) == kWhite);
  framed.outline({{0, 5}, {0, 5}}, 40, kBlack);
  CHECK(framed.at(2, 2) == kBlack);
}

TEST_CASE("ink is what can be read on its paper") {
  CHECK(ink_on(kBlack) == kWhite);
  CHECK(ink_on(kWhite) == kBlack);
  CHECK(ink_on({250, 220, 0}) == kBlack);
  CHECK(ink_on({0, 0, 255}) == kWhite);
}

TEST_CASE("a picture becomes a PNG file of the same pixels") {
  RgbPicture picture(3, 2, kWhite);
  picture.set(2, 1, {1, 2, 3});
  const std::vector<std::byte> file = picture.png();
  const Picture read = decode_picture(
      {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "picture.png", 3);
  CHECK(read.held_rows == 3);
  CHECK(read.held_cols == 2);
  CHECK(read.value(0, 0, 0) == 1);
  CHECK(read.value(2, 2, 1) == 3.0F / 255);
}

}  // namespace tessera::engine
