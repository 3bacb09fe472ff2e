// What the charts draw, as far as text can tell; a browser looks at whole pages in tests/cli.

#include <limits>
#include <string>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/chart/bar_chart.h"
#include "engine/chart/line_chart.h"
#include "engine/chart/matrix_chart.h"
#include "engine/chart/span_chart.h"
#include "engine/chart/tile_chart.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::bar_chart_html;
using engine::matrix_chart_html;
using engine::span_chart_html;
using engine::tile_cards_html;
using tests::has;

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

engine::LineChart line_chart(std::vector<engine::Point> points) {
  engine::LineChart chart;
  chart.id = "loss";
  chart.title = "Loss";
  chart.x_name = "step";
  chart.series.push_back({"training", std::move(points)});
  return chart;
}

TEST_CASE("a chart without numbers is nothing at all") {
  CHECK(line_chart_html(line_chart({})).empty());
  CHECK(line_chart_html(line_chart({{1, kGap}, {2, kGap}})).empty());
  CHECK(bar_chart_html({.id = "a", .parts = {{"x", 0}}, .groups = {{"g", {{"b", {0, kGap}}}}}})
            .empty());
  CHECK(matrix_chart_html({.id = "a", .cells = {{0, 0}, {0, 0}}}).empty());
  CHECK(span_chart_html({.id = "a", .lanes = {{"rank 0", {}}}}).empty());
}

TEST_CASE("a line is lifted over a gap, and a point between two gaps is a dot") {
  const std::string html =
      line_chart_html(line_chart({{1, 1}, {2, 2}, {3, kGap}, {4, 1}, {5, kGap}, {6, 1}, {7, 3}}));
  const std::size_t path = html.find("data-name=\"training\" d=\"");
  REQUIRE(path != std::string::npos);
  const std::string strokes = html.substr(path, html.find("\"/>", path) - path);
  CHECK(count(strokes, "M") == 3);
  CHECK(count(strokes, "L") == 2);
  CHECK(count(strokes, "h0") == 1);
}

TEST_CASE("names in charts cannot break out of their elements") {
  const std::string evil = "</text><script>alert(1)</script>\"'";
  engine::LineChart lines = line_chart({{1, 1}, {2, 2}});
  lines.title = evil;
  lines.x_name = evil;
  lines.note = evil;
  lines.series[0].name = evil;
  lines.series.push_back({evil, {{1, 2}, {2, 1}}, 1, engine::LineLook::Dots});
  lines.marks = {{1.5, evil, evil, true}, {1.5, evil, evil, false}};
  lines.levels = {{1.5, evil}};
  const std::string pages[] = {
      line_chart_html(lines),
      bar_chart_html({.id = "a",
                      .title = evil,
                      .parts = {{evil, 0}},
                      .groups = {{evil, {{evil, {1}}}}},
                      .levels = {{2, evil}},
                      .note = evil}),
      matrix_chart_html({.id = "a",
                         .title = evil,
                         .row_name = evil,
                         .column_name = evil,
                         .names = {evil, evil},
                         .cells = {{3, 1}, {0, 4}}}),
      span_chart_html(
          {.id = "a", .title = evil, .kinds = {{evil, 0}}, .lanes = {{evil, {{0, 1, 0, evil}}}}}),
      tile_cards_html(
          "a",
          {{evil,
            {{evil, {{0, 1}, {0, 1}, {0, 4}, {0, 4}}, {{{0, 1}, {0, 1}, {0, 4}, {0, 4}}}}},
            {evil}}})};
  for (const std::string& page : pages) {
    CHECK(!page.empty());
    CHECK(!has(page, "<script"));
    CHECK(!has(page, "alert(1)</script"));
    CHECK(has(page, "&lt;script&gt;"));
  }
}

TEST_CASE(
    "a constant, a single point and huge numbers are drawn with coordinates that are finite") {
  const std::vector<std::vector<engine::Point>> cases = {{{1, 5}, {2, 5}},
                                                         {{1, 0}, {2, 0}},
                                                         {{7, 3}},
                                                         {{1, 1e300}, {2, -1e300}},
                                                         {{1, 1e-300}, {2, 2e-300}}};
  for (const std::vector<engine::Point>& points : cases) {
    for (const bool logarithmic : {false, true}) {
      engine::LineChart chart = line_chart(points);
      chart.logarithmic = logarithmic;
      const std::string html = line_chart_html(chart);
      CHECK(!html.empty());
      CHECK(!has(html, "nan"));
      CHECK(!has(html, "inf"));
    }
  }
}

TEST_CASE("a wide chart of bars has another drawing for narrow screens") {
  engine::BarChart chart{
      .id = "memory", .parts = {{"weights", 0}}, .groups = {{"rank 0", {{"", {1}}}}}};
  CHECK(count(bar_chart_html(chart), "<svg") == 1);
  chart.wide = true;
  CHECK(count(bar_chart_html(chart), "<svg") == 2);
  CHECK(has(bar_chart_html(chart), "class=\"drawing narrow\""));
}

TEST_CASE("a confusion matrix of many classes is wide, so that their names have room") {
  const auto matrix = [](std::size_t classes) {
    return matrix_chart_html({.id = "a",
                              .cells = std::vector<std::vector<std::int64_t>>(
                                  classes, std::vector<std::int64_t>(classes, 1))});
  };
  CHECK(!has(matrix(20), "class=\"wide\""));
  CHECK(has(matrix(21), "class=\"wide\""));
  CHECK(has(matrix(40), "class=\"rising\""));
  CHECK(!has(matrix(41), "class=\"rising\""));
}

TEST_CASE("parts that no bar has are left out of legend and table") {
  const std::string html = bar_chart_html(
      {.id = "memory",
       .title = "Memory",
       .unit = engine::Unit::Bytes,
       .parts = {{"weights", 0}, {"pictures", 1}},
       .groups = {{"rank 0", {{"planned", {2048, 0}}, {"measured", {1024, kGap}}}}}});
  CHECK(has(html, "weights"));
  CHECK(!has(html, "pictures"));
  CHECK(count(html, "<rect") == 2);
  CHECK(has(html, "rank 0, planned: weights 2.00\u00a0KiB"));
}

TEST_CASE(
    "a confusion matrix draws what is not 0, and none is drawn of more classes than can be seen") {
  const std::string html = matrix_chart_html({.id = "confusion",
                                              .title = "Confusion",
                                              .column_name = "taken for",
                                              .names = {"cat", "dog"},
                                              .cells = {{3, 1}, {0, 4}}});
  CHECK(count(html, "class=\"hit\"") == 2);
  CHECK(count(html, "class=\"miss\"") == 1);
  CHECK(has(html, "cat taken for dog: 1 of 4 (25.0\u00a0%)"));
  const std::vector<std::vector<std::int64_t>> many(
      engine::kMostMatrixRows + 1, std::vector<std::int64_t>(engine::kMostMatrixRows + 1, 1));
  CHECK(is_empty(engine::MatrixChart{.id = "a", .cells = many}));
}

TEST_CASE("spans too short to be seen are drawn together, long ones tell what they are") {
  engine::Lane lane{"rank 0", {}};
  lane.spans.push_back({0, 1, 0, "forward 3"});
  for (int i = 0; i < 10'000; ++i) {
    lane.spans.push_back({1 + 1e-4 * i, 1 + 1e-4 * (i + 1), 1, "short"});
  }
  const std::string html =
      span_chart_html({.id = "step", .kinds = {{"computing", 0}, {"waiting", 1}}, .lanes = {lane}});
  CHECK(has(html, "<title>forward 3</title>"));
  CHECK(!has(html, "short"));
  CHECK(html.size() < 4000);
}

constexpr Region kWhole{{0, 2}, {0, 3}, {0, 8}, {0, 8}};

TEST_CASE("what two ranks require is hatched, once for each pair") {
  const engine::TiledMap map{
      "input", kWhole, {{{0, 2}, {0, 3}, {0, 5}, {0, 8}}, {{0, 2}, {0, 3}, {3, 8}, {0, 8}}}};
  const std::string html = tile_cards_html("tiles", {{"layers 0-3", {map}, {}}});
  CHECK(count(html, "class=\"tile") == 2);
  CHECK(count(html, "class=\"halo\"") == 1);
  CHECK(has(html, "rank 1: rows 3-7, columns 0-7, channels 0-2, images 0-1"));
}

TEST_CASE("ranks that share out images have a panel each, ranks without a region none") {
  const engine::TiledMap map{
      "input", kWhole, {{{0, 1}, {0, 3}, {0, 8}, {0, 8}}, {{1, 2}, {0, 3}, {0, 8}, {0, 8}}, {}}};
  const std::string html = tile_cards_html("tiles", {{"layer 4", {map}, {}}});
  CHECK(count(html, "class=\"paper\"") == 2);
  CHECK(count(html, "class=\"tile") == 2);
  CHECK(count(html, "class=\"halo\"") == 0);
}

TEST_CASE("a map that all ranks require as a whole is one box") {
  const engine::TiledMap map{"input", kWhole, {kWhole, kWhole, kWhole}};
  const std::string html = tile_cards_html("tiles", {{"layer 9", {map}, {}}});
  CHECK(count(html, "class=\"tile") == 0);
  CHECK(has(html, "each of 3 ranks"));
}

}  // namespace
