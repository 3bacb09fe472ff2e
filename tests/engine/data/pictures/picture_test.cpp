#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <zlib.h>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/batch/augment.h"
#include "engine/data/pictures/picture_builder.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::decode_picture;
using engine::Detail;
using engine::Picture;
using partitioner::MapShape;
using tests::Bytes;
using tests::has;

using tests::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

Bytes corpus(const std::string& name) {
  return tests::read_back(fs::path(TESSERA_SOURCE_DIR) / "tests/fuzz/corpus/picture" / name);
}

std::string refusal(const Bytes& file, const Detail& detail = {}) {
  return tests::input_error_of([&] { (void)decode_picture(file, "a.picture", 3, detail); });
}

Bytes written_png(int rows, int cols, int channels, const Bytes& pixels) {
  const TemporaryFolder folder;
  tests::write_png(folder / "a.png", rows, cols, channels, pixels);
  return tests::read_back(folder / "a.png");
}

Bytes written_jpeg(int rows, int cols, int channels, const Bytes& pixels) {
  const TemporaryFolder folder;
  tests::write_jpeg(folder / "a.jpg", rows, cols, channels, pixels);
  return tests::read_back(folder / "a.jpg");
}

// A grey JPEG of 16x16 pixels and as many scans: the first has the means of its four blocks, which
// are all zero, each other one that nothing is added to them. Every one is as the format allows.
Bytes progressive_jpeg(int scans) {
  Bytes file = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
  file.insert(file.end(), 64, 1);  // quantisation
  const Bytes frame = {0xff, 0xc2, 0, 11, 8, 0, 16, 0, 16, 1, 1, 0x11, 0};
  file.insert(file.end(), frame.begin(), frame.end());
  constexpr std::uint8_t kNoDifference = 0;
  constexpr std::uint8_t kRunOfEmptyBlocks = 0x20;  // two more bits say that there are four
  for (const auto& [table, value] :
       {std::pair<std::uint8_t, std::uint8_t>{0x00, kNoDifference}, {0x10, kRunOfEmptyBlocks}}) {
    const Bytes start = {0xff, 0xc4, 0, 20, table, 1};  // its one code is the bit 0
    file.insert(file.end(), start.begin(), start.end());
    file.insert(file.end(), 15, 0);
    file.push_back(value);
  }
  const Bytes means = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0, 0x0f};
  const Bytes others = {0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0, 0x1f};
  for (int scan = 0; scan < scans; ++scan) {
    const Bytes& next = scan == 0 ? means : others;
    file.insert(file.end(), next.begin(), next.end());
  }
  file.insert(file.end(), {0xff, 0xd9});
  return file;
}

// Where the pixel at (row, col) of an upright picture of rows x cols is stored, by EXIF 2.32.
std::pair<Index, Index> stored_place(
    int orientation, Index row, Index col, Index rows, Index cols) {
  const Index last_row = rows - 1;
  const Index last_col = cols - 1;
  switch (orientation) {
    case 2:
      return {row, last_col - col};
    case 3:
      return {last_row - row, last_col - col};
    case 4:
      return {last_row - row, col};
    case 5:
      return {col, row};
    case 6:
      return {last_col - col, row};
    case 7:
      return {last_col - col, last_row - row};
    case 8:
      return {col, last_row - row};
    default:
      return {row, col};
  }
}

// As it is stored for a camera that writes `orientation`, (H, W, 3).
Bytes stored(const Bytes& upright, Index rows, Index cols, int orientation) {
  const Index stored_cols = orientation >= 5 ? rows : cols;
  Bytes pixels(upright.size());
  for (Index row = 0; row < rows; ++row) {
    for (Index col = 0; col < cols; ++col) {
      const auto [to_row, to_col] = stored_place(orientation, row, col, rows, cols);
      std::copy_n(&upright[static_cast<std::size_t>((row * cols + col) * 3)],
                  3,
                  &pixels[static_cast<std::size_t>((to_row * stored_cols + to_col) * 3)]);
    }
  }
  return pixels;
}

std::vector<float> rendered(const Picture& picture, const MapShape& input) {
  engine::RenderingRules rules;
  rules.input = input;
  rules.picture = input;
  std::vector<float> out(static_cast<std::size_t>(input.volume()));
  render(picture,
         centre_crop(rules, picture.shape),
         rules,
         {{0, 1}, {0, input.channels}, {0, input.rows}, {0, input.cols}},
         out);
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return most;
}

// A smooth picture, (H, W, 3).
Bytes waves(Index rows, Index cols) {
  Bytes pixels;
  for (Index row = 0; row < rows; ++row) {
    for (Index col = 0; col < cols; ++col) {
      const double x = static_cast<double>(col) / static_cast<double>(cols);
      const double y = static_cast<double>(row) / static_cast<double>(rows);
      for (const double value : {std::sin(5 * x + y), std::cos(4 * y), x - y}) {
        pixels.push_back(static_cast<std::uint8_t>(127 + 120 * value));
      }
    }
  }
  return pixels;
}

}  // namespace

TEST_CASE("a picture lies as its camera says, whichever of eight ways that is") {
  constexpr int kRows = 6;
  constexpr int kCols = 11;
  const Bytes upright = tests::random_bytes(Index{kRows} * kCols * 3, 4);
  const Picture expected = decode_picture(written_png(kRows, kCols, 3, upright), "a.png", 3);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const Bytes pixels = stored(upright, kRows, kCols, orientation);
    const int rows = orientation >= 5 ? kCols : kRows;
    const int cols = orientation >= 5 ? kRows : kCols;
    const Bytes file = tests::turned_png(written_png(rows, cols, 3, pixels), orientation);
    const Picture png = decode_picture(file, "a.png", 3);
    CHECK(png.shape == MapShape{3, kRows, kCols});
    CHECK(png.bytes == expected.bytes);
    const Picture jpeg = decode_picture(
        tests::turned_jpeg(written_jpeg(rows, cols, 3, pixels), orientation), "a.jpg", 3);
    const Picture unturned = decode_picture(written_jpeg(rows, cols, 3, pixels), "a.jpg", 3);
    CHECK(jpeg.shape == MapShape{3, kRows, kCols});
    const auto [row, col] = stored_place(orientation, 1, 7, kRows, kCols);
    CHECK(jpeg.value(2, 1, 7) == unturned.value(2, row, col));
  }
}

TEST_CASE("an orientation that EXIF does not have changes nothing") {
  const Bytes file = written_jpeg(5, 9, 3, tests::random_bytes(Index{5} * 9 * 3, 4));
  const Picture plain = decode_picture(file, "a.jpg", 3);
  for (const int orientation : {0, 9, 255}) {
    CHECK(decode_picture(tests::turned_jpeg(file, orientation), "a.jpg", 3).bytes == plain.bytes);
  }
}

TEST_CASE("pictures are reduced by 1, 2, 3, 4, 6, 8, ..., as long as what is needed is kept") {
  CHECK(engine::reduction_for(3000, 4000, {64, 64}) == 32);
  CHECK(engine::reduction_for(128, 4000, {64, 64}) == 2);
  CHECK(engine::reduction_for(127, 4000, {64, 64}) == 1);
  CHECK(engine::reduction_for(10, 10, {64, 64}) == 1);
  CHECK(engine::reduction_for(3000, 4000, {}) == 1);
  CHECK(engine::reduction_for(5, 4, {0, 0}) == 4);
  for (const Index reduction : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    CHECK(engine::reduction_for(reduction * 10, reduction * 10 + 9, {10, 10}) == reduction);
    CHECK(engine::reduction_for(reduction * 10 + 9, reduction * 10 + 9, {10, 10}) == reduction);
  }
}

TEST_CASE("what is needed of pictures is the input at the largest zoom and the strongest aspect") {
  engine::RenderingRules rules;
  rules.input = {3, 32, 48};
  rules.picture = {3, 40, 60};
  CHECK(needed_detail(rules).rows == 40);
  CHECK(needed_detail(rules).cols == 60);
  rules.augmentation.min_crop = 20;
  rules.augmentation.max_crop = 80;
  rules.augmentation.aspect = 0.8;
  CHECK(needed_detail(rules).rows == 100);
  CHECK(needed_detail(rules).cols == 150);
  rules.augmentation.max_crop = 30;  // never closer than for testing, which has the same pictures
  rules.augmentation.aspect = 1;
  CHECK(needed_detail(rules).rows == 40);
}

TEST_CASE("a held pixel is the mean of those it stands for, also where they are fewer at an edge") {
  const MapShape shape{1, 5, 7};
  const Bytes bytes = tests::random_bytes(shape.volume(), 9);
  const Picture picture = engine::picture_of_planes(bytes, shape, 1, {2, 2});
  REQUIRE(picture.reduction == 2);
  REQUIRE(picture.held_rows == 3);
  REQUIRE(picture.held_cols == 4);
  const auto mean = [&](Index row, Index col) {
    int sum = 0;
    int count = 0;
    for (Index r = row; r < std::min<Index>(row + 2, 5); ++r) {
      for (Index c = col; c < std::min<Index>(col + 2, 7); ++c) {
        sum += bytes[static_cast<std::size_t>(r * 7 + c)];
        ++count;
      }
    }
    return (sum + count / 2) / count;
  };
  for (Index row = 0; row < 3; ++row) {
    for (Index col = 0; col < 4; ++col) {
      CHECK(picture.bytes[static_cast<std::size_t>(row * 4 + col)] == mean(2 * row, 2 * col));
    }
  }
}

TEST_CASE("a reduced picture is rendered where the whole one is, turned or not") {
  constexpr int kRows = 301;  // no multiples of anything
  constexpr int kCols = 403;
  const MapShape input{3, 30, 30};
  const Bytes upright = waves(kRows, kCols);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const Bytes pixels = stored(upright, kRows, kCols, orientation);
    const int rows = orientation >= 5 ? kCols : kRows;
    const int cols = orientation >= 5 ? kRows : kCols;
    // Per pixel of displacement values change by 0.006.
    const auto check = [&](const Bytes& file, double tolerance) {
      const Picture whole = decode_picture(file, "a", 3);
      for (const Index reduction : {3, 6, 8}) {
        const Picture reduced =
            decode_picture(file, "a", 3, {kRows / reduction, kRows / reduction});
        CHECK(reduced.reduction == reduction);
        CHECK(reduced.shape == whole.shape);
        CHECK(std::ssize(reduced.bytes) * (reduction * reduction - 4) < std::ssize(whole.bytes));
        CHECK(largest_difference(rendered(whole, input), rendered(reduced, input)) < tolerance);
      }
    };
    check(tests::turned_png(written_png(rows, cols, 3, pixels), orientation), 0.006);
    check(tests::turned_jpeg(written_jpeg(rows, cols, 3, pixels), orientation), 0.014);
  }
}

TEST_CASE("decoded pixels have the same bits on every machine") {
  // Sums of the bytes of all reductions, as libjpeg-turbo gives them with and without SIMD.
  const auto sum = [](const char* name) {
    uLong all = 0;
    for (const Index least : {1000, 8, 4, 2, 1}) {
      const Picture picture = decode_picture(corpus(name), name, 3, {least, least});
      all = crc32(all, picture.bytes.data(), static_cast<unsigned>(picture.bytes.size()));
    }
    return all;
  };
  CHECK(sum("valid_colour.jpg") == 1657547741U);
  CHECK(sum("valid_progressive.jpg") == 688581461U);
  CHECK(sum("valid_grey.jpg") == 2549952828U);
  CHECK(sum("valid_cmyk.jpg") == 3879587663U);
}

TEST_CASE("a JPEG with a damaged or missing part is refused, never filled in") {
  const Bytes whole = written_jpeg(64, 64, 3, tests::random_bytes(Index{64} * 64 * 3, 8));
  REQUIRE(refusal(whole).empty());
  SUBCASE("without its end") {
    CHECK(has(refusal(Bytes(whole.begin(), whole.end() - 2)), "cut off"));
  }
  SUBCASE("without its second half, but with an end") {
    Bytes cut(whole.begin(), whole.begin() + std::ssize(whole) / 2);
    cut.insert(cut.end(), {0xff, 0xd9});
    CHECK(has(refusal(cut), "damaged"));
  }
  SUBCASE("with other values in the middle") {
    int refused = 0;
    for (std::size_t at = whole.size() / 2; at < whole.size() - 100; at += 97) {
      Bytes damaged = whole;
      std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at), 20, std::uint8_t{0});
      refused += refusal(damaged).empty() ? 0 : 1;
    }
    CHECK(refused > 20);
  }
}

TEST_CASE("a progressive JPEG may have as many scans as encoders make, not thousands") {
  CHECK(refusal(corpus("valid_progressive.jpg")).empty());
  for (const Index least : {1000, 1}) {
    const Detail detail{least, least};
    CHECK(refusal(progressive_jpeg(2), detail).empty());
    CHECK(refusal(progressive_jpeg(100), detail).empty());
    for (const int scans : {101, 5000}) {
      CAPTURE(scans);
      CHECK(has(refusal(progressive_jpeg(scans), detail), "more than 100 scans"));
    }
  }
}

TEST_CASE("a PNG with one wrong byte anywhere is refused") {
  const Bytes whole = written_png(20, 20, 3, tests::random_bytes(1200, 8));
  REQUIRE(refusal(whole).empty());
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    CAPTURE(at);
    Bytes damaged = whole;
    damaged[at] ^= 0x10U;
    CHECK(!refusal(damaged).empty());
  }
}

TEST_CASE("a header that says more pixels than the file can hold is refused before they are made") {
  Bytes jpeg = corpus("valid_colour.jpg");
  const auto frame =
      std::search(jpeg.begin(), jpeg.end(), "\xff\xc0", "\xff\xc0" + 2, [](std::uint8_t a, char b) {
        return a == static_cast<std::uint8_t>(b);
      });
  REQUIRE(frame != jpeg.end());
  frame[5] = 0x20;  // rows, then columns, of two bytes
  frame[7] = 0x10;
  CHECK(has(refusal(jpeg), "pixels, but is cut off"));
  frame[5] = 0xf0;
  frame[7] = 0xf0;
  CHECK(has(refusal(jpeg), "at most 2^26"));
  Bytes bmp(54);
  bmp[0] = 'B';
  bmp[1] = 'M';
  bmp[10] = 54;  // where pixels begin
  bmp[14] = 40;  // bytes of the header
  for (const std::size_t side : {18, 22}) {
    std::fill_n(bmp.begin() + static_cast<std::ptrdiff_t>(side), 3, 0xff);
    bmp[side + 3] = 0x7f;
  }
  bmp[28] = 32;  // bits of a pixel
  CHECK(has(refusal(bmp), "at most 2^26"));
  Bytes png = corpus("valid_grey.png");
  png[18] = 0x20;
  png[22] = 0x10;
  tests::mend_png_checksum(png, 8);
  CHECK(has(refusal(png), "pixels, but is cut off"));
}

TEST_CASE("pictures of other formats are named, with what to do") {
  const auto with = [](const char* start) {
    Bytes bytes(start, start + std::strlen(start));
    bytes.resize(100);
    return refusal(bytes);
  };
  CHECK(has(with("\x01\x01\x01\x18"
                 "ftypheic"),
            "HEIC picture, which is not supported: convert it to JPEG"));
  CHECK(has(with("\x01\x01\x01\x18"
                 "ftypavif"),
            "AVIF picture"));
  CHECK(has(with("II*"), "TIFF"));
  CHECK(has(with("hello"), "not a JPEG, PNG, WebP, GIF or BMP"));
  CHECK(engine::is_picture_name("a/B.WebP"));
  CHECK(!engine::is_picture_name("a/b.HEIC"));
  CHECK(engine::is_other_picture_name("a/b.HEIC"));
  CHECK(!engine::is_other_picture_name("a/b.txt"));
}

TEST_CASE("a header is read from the beginning of a file, and says what decoding takes") {
  const TemporaryFolder folder;
  const Bytes pixels = tests::random_bytes(Index{400} * 300 * 3, 8);
  const Bytes file = tests::turned_jpeg(written_jpeg(300, 400, 3, pixels), 6);
  tests::write_bytes(folder / "a.jpg", file);
  const engine::PictureHeader header = engine::read_picture_header(folder / "a.jpg");
  CHECK(header.rows == 300);
  CHECK(header.cols == 400);
  CHECK(header.orientation == 6);
  CHECK(decoding_bytes(header, {}) > 300 * 400 * 3);
  CHECK(decoding_bytes(header, {50, 50}) < static_cast<Index>(file.size()) + 100000);
  tests::write_bytes(folder / "b.jpg", Bytes(file.begin(), file.begin() + 100));
  CHECK(has(tests::input_error_of([&] { (void)engine::read_picture_header(folder / "b.jpg"); }),
            "cut off"));
}
