#include "engine/page/words.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::cut_text;
using engine::duration_text;

TEST_CASE("durations are said in the two largest units") {
  CHECK(duration_text(0) == "0.0 s");
  CHECK(duration_text(9.44) == "9.4 s");
  CHECK(duration_text(59.4) == "59 s");
  CHECK(duration_text(3599.7) == "1 h 0 min");
  CHECK(duration_text(90) == "1 min 30 s");
  CHECK(duration_text(8000) == "2 h 13 min");
  CHECK(duration_text(engine::kUnknown) == "–");
}

TEST_CASE("a cut is named by the ranges that the ranks own") {
  const auto group_of = [](std::vector<Region> owned) {
    engine::OutlinedGroup group;
    for (const Region& region : owned) {
      group.tiles.push_back({region, region});
    }
    return group;
  };
  CHECK(cut_text(group_of({{{0, 2}, {0, 3}, {0, 4}, {0, 4}}})) == "one device");
  CHECK(cut_text(group_of({{{0, 2}, {0, 3}, {0, 4}, {0, 4}}, {}})) == "one device");
  CHECK(cut_text(group_of({{{0, 2}, {0, 3}, {0, 4}, {0, 4}}, {{0, 2}, {0, 3}, {4, 8}, {0, 4}}})) ==
        "2x1 tiles");
  CHECK(cut_text(group_of({{{0, 1}, {0, 3}, {0, 4}, {0, 4}}, {{1, 2}, {0, 3}, {0, 4}, {0, 4}}})) ==
        "images in 2");
  CHECK(cut_text(group_of({{{0, 1}, {0, 2}, {0, 4}, {0, 4}}, {{0, 1}, {2, 3}, {0, 4}, {0, 4}}})) ==
        "channels in 2");
}

TEST_CASE("a model is called by its file's name alone") {
  CHECK(engine::stem_of("models/lenet5.cfg") == "lenet5");
  CHECK(engine::stem_of("").empty());
}

}  // namespace
