#include "engine/drawing/text.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "engine/drawing/bitmap_text.h"
#include "engine/drawing/font_text.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {
namespace {

using DrawsText = TextMask (*)(const std::string&, const TextLayout&);

// The ways in which text can be drawn here.
std::vector<DrawsText> ways_to_draw() {
  std::vector<DrawsText> ways{bitmap_text_mask};
  if (font_text_problem().empty()) {
    ways.push_back(font_text_mask);
  }
  return ways;
}

Index inked(const TextMask& mask, Range rows, Range cols) {
  Index count = 0;
  for (Index row = rows.begin; row < rows.end; ++row) {
    for (Index col = cols.begin; col < cols.end; ++col) {
      count += mask.coverage[static_cast<std::size_t>(row * mask.cols + col)] > 0 ? 1 : 0;
    }
  }
  return count;
}

Index inked(const TextMask& mask) {
  return inked(mask, {0, mask.rows}, {0, mask.cols});
}

const TextLayout kOneLine{.height = 24, .max_cols = 1000};

}  // namespace

TEST_CASE("a letter with an umlaut is as wide as the letter without") {
  for (const DrawsText text : ways_to_draw()) {
    CHECK(text("K\u00e4se", kOneLine).cols == text("Kase", kOneLine).cols);
    CHECK(text("a\u0308a\u0308", kOneLine).cols == text("aa", kOneLine).cols);
  }
}

TEST_CASE("fonts show an umlaut: it has ink above its letter") {
  if (!font_text_problem().empty()) {
    return;
  }
  const TextMask plain = font_text_mask("a", kOneLine);
  const TextMask umlaut = font_text_mask("\u00e4", kOneLine);
  CHECK(umlaut.unknown == 0);
  REQUIRE(umlaut.rows == plain.rows);
  CHECK(inked(umlaut, {0, umlaut.rows / 2}, {0, umlaut.cols}) >
        inked(plain, {0, plain.rows / 2}, {0, plain.cols}));
}

TEST_CASE("characters that no font has are counted") {
  for (const DrawsText text : ways_to_draw()) {
    CHECK(text("cup", kOneLine).unknown == 0);
    CHECK(text("a \U0010fffd and \U0010fffc", kOneLine).unknown == 2);
  }
}

TEST_CASE("text takes the lines that it needs, and no more columns than there are") {
  const std::string name = "a long name of a class that does not fit on one line 93 %";
  for (const DrawsText text : ways_to_draw()) {
    const TextMask one = text("a", {.height = 20, .max_cols = 150, .max_lines = 6});
    const TextMask all = text(name, {.height = 20, .max_cols = 150, .max_lines = 6});
    CHECK(all.cols <= 150);
    CHECK(all.rows >= 3 * one.rows);
    CHECK(all.rows <= 6 * one.rows);
    const TextMask one_line = text(name, {.height = 20, .max_cols = 1000});
    // Nothing is left out: as much ink as on one line.
    const double apart =
        std::abs(static_cast<double>(inked(all)) / static_cast<double>(inked(one_line)) - 1);
    CHECK(apart < 0.05);
  }
}

TEST_CASE("text that does not fit keeps its beginning and its end") {
  for (const DrawsText text : ways_to_draw()) {
    const TextMask end = text("93 %", kOneLine);
    const TextMask cut = text(std::string(500, 'l') + "93 %", {.height = 24, .max_cols = 200});
    CHECK(cut.cols <= 200);
    CHECK(cut.cols > 150);
    CHECK(cut.rows == end.rows);
    // Columns of `l` and dots are less dense than these.
    CHECK(inked(cut, {0, cut.rows}, {cut.cols - end.cols, cut.cols}) >= inked(end) * 9 / 10);
  }
}

TEST_CASE("lines are about as high as wanted") {
  for (const DrawsText text : ways_to_draw()) {
    for (const Index height : {12, 16, 24, 48}) {
      const TextMask mask = text("\u00c4gypten", {.height = height, .max_cols = 1000});
      CHECK(mask.rows >= height * 3 / 4);
      CHECK(mask.rows <= height * 5 / 4);
    }
  }
}

TEST_CASE("any bytes are text") {
  CHECK(text_mask("\xff", kOneLine).unknown == 0);
  for (const DrawsText text : ways_to_draw()) {
    for (const std::string& bytes : {std::string(),
                                     std::string("\xff\xfe\x80"),
                                     std::string("\x1b[2J\n\t\x00", 7),
                                     std::string(10000, '\xc3'),
                                     std::string(10000, 'W'),
                                     std::string("\u05e9\u05dc\u05d5\u05dd \u202e 12 %")}) {
      for (const Index cols : {1, 7, 300}) {
        const TextMask mask =
            text(printable(bytes), {.height = 16, .max_cols = cols, .max_lines = 3});
        CHECK(mask.cols <= cols);
        CHECK(std::ssize(mask.coverage) == mask.rows * mask.cols);
      }
    }
  }
}

TEST_CASE("readable text grows with the picture, and has a least height") {
  CHECK(readable_text_height(28, 28) == readable_text_height(1, 1));
  CHECK(readable_text_height(28, 28) >= 12);
  CHECK(readable_text_height(1000, 1000) == 2 * readable_text_height(500, 500));
  CHECK(readable_text_height(200, 3000) == readable_text_height(3000, 200));
}

TEST_CASE("text blends with what lies below it, and what is outside is left out") {
  const TextMask mask{2, 3, {0, 255, 128, 255, 255, 255}, 0};
  RgbPicture picture(2, 3, {200, 100, 0});
  draw_text(picture, mask, 0, 0, kBlack);
  CHECK(picture.at(0, 0) == Colour{200, 100, 0});
  CHECK(picture.at(0, 1) == kBlack);
  CHECK(picture.at(0, 2) == Colour{100, 50, 0});
  for (const Index row : {-2, -1, 1, 2}) {
    for (const Index col : {-3, -1, 1, 3}) {
      draw_text(picture, mask, row, col, kWhite);
    }
  }
  CHECK(picture.at(1, 2) == kWhite);
}

}  // namespace tessera::engine
