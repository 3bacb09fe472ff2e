#include "engine/run_files/plan_outline.h"

#include <string>

#include <doctest/doctest.h>

#include "partitioner/cfg/model_file.h"
#include "partitioner/text/plan_report.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

constexpr Index kBatch = 8;

partitioner::Network lenet() {
  return partitioner::read_model(TESSERA_SOURCE_DIR "/models/lenet5.cfg").network;
}

TEST_CASE("the outline of a plan has its layers, groups and tiles") {
  const partitioner::Network network = lenet();
  const auto partition =
      partitioner::make_partition(network, {.grid_rows = 2, .grid_cols = 2, .groups = {{0, 1}}});
  const partitioner::Plan plan = make_plan(network, partition, kBatch);
  const auto outline = engine::plan_outline(plan_json(network, plan, {}));
  REQUIRE(outline);
  CHECK(outline->batch == kBatch);
  CHECK(outline->ranks == 4);
  CHECK(outline->image_channels == network.image.channels);
  CHECK(outline->image_rows == network.image.rows);
  CHECK(outline->image_cols == network.image.cols);
  REQUIRE(std::ssize(outline->layers) == network.size());
  CHECK(outline->layers[0].kind == "convolutional");
  CHECK(outline->layers[0].channels == network.layer(0).output.channels);
  CHECK(outline->groups[0].first == 0);
  CHECK(outline->groups[0].last == 1);
  REQUIRE(outline->groups[0].tiles.size() == 4);
  CHECK(outline->groups[0].tiles[3].owned == plan.tile(1, 3).owned);
  CHECK(outline->groups[0].tiles[3].computed == plan.tile(0, 3).computed);
  REQUIRE(outline->groups[0].reads.size() == 1);
  CHECK(outline->groups[0].reads[0].map == partitioner::kImage);
  CHECK(outline->groups[0].reads[0].required == plan.groups[0].required.at(partitioner::kImage));
  CHECK(outline->groups[0].messages == 0);  // every rank reads its own part of the pictures
  CHECK(outline->groups[0].multiply_adds > 0);
  CHECK(outline->groups[0].redundant_multiply_adds == 0);  // windows of 2x2 do not overlap
  CHECK(outline->groups[1].messages > 0);
  CHECK(outline->groups[1].message_bytes > 0);
}

TEST_CASE("what is no plan has no outline") {
  for (
      const char* text :
      {"",
       "{",
       "[]",
       "{\"batch\":1}",
       R"({"batch":1,"ranks":1,"layers":[],"groups":[]})",
       R"({"batch":1,"ranks":1,"layers":[],"groups":[{"layers":[0,5],"ranks":[]}]})",
       R"({"batch":1,"ranks":1,"layers":[{"kind":"a","output":[1,1,1]}],"groups":[{"layers":[0,0],)"
       R"("reads":[{"map":7,"required":[]}],"ranks":[]}]})",
       R"({"batch":1,"ranks":"x","layers":[],"groups":[]})"}) {
    CAPTURE(text);
    CHECK(!engine::plan_outline(text));
  }
}

}  // namespace
