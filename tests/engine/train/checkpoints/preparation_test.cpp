// What belongs to a trained model beside its weights: kept, compared, taken from there.

#include "engine/train/checkpoints/preparation.h"

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::convention_in_effect;
using engine::Preparation;
using engine::preparation_of;
using engine::RenderingRules;

namespace {

RenderingRules rules(engine::PixelConvention convention = {}) {
  return {{3, 8, 8}, {3, 8, 8}, {}, std::nullopt, std::move(convention)};
}

}  // namespace

TEST_CASE("a record of preparation comes back from its text as it was") {
  const Preparation kept = preparation_of(rules({{0.4F, 0.5F, 0.6F}, {0.25F}}),
                                          {"ball", "cup \"small\"", "zelt \xc3\xa4"});
  CHECK(engine::parse_preparation(to_json(kept), "f") == kept);
}

TEST_CASE("names that are no UTF-8 are equal to what a file keeps of them") {
  const Preparation now = preparation_of(rules(), {"gr\xfcn", "rot"});
  CHECK_FALSE(class_difference(engine::parse_preparation(to_json(now), "f"), now).has_value());
}

TEST_CASE("values are those in effect, whatever they came from") {
  CHECK(preparation_of(rules(), {}).mean == std::vector<float>{0, 0, 0});
  CHECK(preparation_of(rules(), {}).stddev == std::vector<float>{1, 1, 1});
  RenderingRules cropped = rules();
  cropped.crop = partitioner::Crop{};
  CHECK_FALSE(
      pixel_difference(preparation_of(cropped, {}), preparation_of(rules({{0.5F}, {0.5F}}), {})));
  CHECK(pixel_difference(preparation_of(cropped, {}), preparation_of(rules(), {})).has_value());
}

TEST_CASE("a detector's pictures are prepared in another way, and in one of three") {
  RenderingRules stretched = rules();
  stretched.detects = true;
  RenderingRules fitted = stretched;
  fitted.augmentation.letter_box = true;
  CHECK(pixel_difference(preparation_of(rules(), {}), preparation_of(stretched, {})).has_value());
  CHECK(pixel_difference(preparation_of(fitted, {}), preparation_of(stretched, {})).has_value());
  CHECK_FALSE(pixel_difference(preparation_of(fitted, {}), preparation_of(fitted, {})).has_value());
  RenderingRules at_corner = fitted;
  at_corner.augmentation.top_left = true;
  CHECK(pixel_difference(preparation_of(fitted, {}), preparation_of(at_corner, {})).has_value());
}

TEST_CASE("what the command line does not give is taken from the record") {
  const Preparation stored = preparation_of(rules({{0.4F, 0.5F, 0.6F}, {0.25F}}), {});
  const auto neither = convention_in_effect({}, stored);
  CHECK(neither.mean == stored.mean);
  CHECK(neither.stddev == std::vector<float>{0.25F});
  const auto mean_only = convention_in_effect({{0.1F}, {}}, stored);
  CHECK(mean_only.mean == std::vector<float>{0.1F});
  CHECK(mean_only.stddev == std::vector<float>{0.25F});
  CHECK(convention_in_effect({}, std::nullopt).mean.empty());
}

TEST_CASE("the first class that differs is named, and names that say nothing do not differ") {
  const auto with = [](std::vector<std::string> names) { return preparation_of(rules(), names); };
  const auto difference =
      class_difference(with({"ant", "bee", "cat"}), with({"ant", "cat", "bee"}));
  REQUIRE(difference.has_value());
  CHECK(*difference == "was trained with \"bee\" as class 1, in the data set it is \"cat\"");
  CHECK(class_difference(with({"ant", "bee"}), with({"ant", "bee", "cat"})).has_value());
  CHECK_FALSE(class_difference(with({"ant", "bee"}), with({"ant", "bee"})).has_value());
  CHECK_FALSE(class_difference(with({"0", "1"}), with({"ant", "bee"})).has_value());
}

TEST_CASE("a record that cannot be used is refused by its file") {
  for (const char* text : {"",
                           "[]",
                           "{\"mean\":[0.5]}",
                           "nonsense",
                           "{\"mean\":[0],\"std\":[0],\"classes\":[],\"input\":[1,2,2],"
                           "\"picture\":[1,2,2],\"resize\":\"\"}",
                           "{\"mean\":[0,0],\"std\":[1,1],\"classes\":[],\"input\":[1,2,2],"
                           "\"picture\":[1,2,2],\"resize\":\"\"}"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(
        (void)engine::parse_preparation(text, "run/c.safetensors"),
        doctest::Contains("run/c.safetensors: its record of how pictures are prepared"),
        InputError);
  }
}
