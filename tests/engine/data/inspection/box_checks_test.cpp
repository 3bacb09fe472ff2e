#include "engine/data/inspection/box_checks.h"

#include <fmt/format.h>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::DataFault;
using engine::DataProblem;
using tests::has;
using tests::TemporaryFolder;

namespace {

// Of pictures that are not there, with the objects that `train` and `test` give for each.
engine::InspectedData set_of(const TemporaryFolder& folder,
                             const std::vector<std::string>& train,
                             const std::vector<std::string>& test) {
  engine::InspectedData data;
  data.path = "d.data";
  for (const auto& [half, texts] : {std::pair{"train", train}, std::pair{"test", test}}) {
    std::string list;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      list += fmt::format("{}{}.jpg\n", half, i);
      tests::write_text(folder / fmt::format("{}{}.txt", half, i), texts[i]);
    }
    tests::write_text(folder / fmt::format("{}.list", half), list);
  }
  tests::write_text(folder / "d.data", "classes=2\ntrain=train.list\nvalid=test.list\n");
  const auto listed = [&](engine::Split split) {
    return engine::list_dataset(folder / "d.data", split, 3, {.kind = engine::TargetKind::Boxes});
  };
  data.training.emplace(listed(engine::Split::Train));
  data.testing.emplace(listed(engine::Split::Test));
  return data;
}

const std::string kBoth = "0 0.5 0.5 0.2 0.2\n1 0.2 0.2 0.1 0.1\n";

// What is found in a data set beside ordinary pictures.
std::vector<DataProblem> found(const std::vector<std::string>& train,
                               const std::vector<std::string>& test = {kBoth}) {
  const TemporaryFolder folder;
  return box_problems(set_of(folder, train, test));
}

std::vector<DataProblem> found_by(const std::string& head, const std::vector<std::string>& train) {
  const TemporaryFolder folder;
  const auto model =
      partitioner::parse_model("[net]\nheight=64\nwidth=128\nchannels=3\n" + head + "\n", "m.cfg");
  return box_problems(set_of(folder, train, {kBoth}), model.network);
}

}  // namespace

TEST_CASE("nothing is doubtful about objects within their pictures, or a little out of them") {
  CHECK(found({kBoth, kBoth + "1 0.05 0.5 0.11 0.3\n", ""}).empty());
  CHECK(found({kBoth, kBoth, kBoth + "1 0.1 0.5 0.5 0.3\n"}).empty());  // one that is far out
}

TEST_CASE("many boxes that reach out of their pictures are counted, with the first") {
  const auto problems = found({kBoth, "0 0.1 0.2 0.4 0.5\n", "1 0.7 0.5 0.95 0.7\n"});
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].fault == DataFault::DoubtfulBox);
  CHECK(has(problems[0].where, "train1.jpg"));
  CHECK(has(problems[0].what, "2 of 6 objects reach out"));
}

TEST_CASE("boxes without an extent are counted in either dimension") {
  const auto problems = found({kBoth, kBoth + "0 0.5 0.5 0.0000001 0.3\n1 0.5 0.5 0.3 0.0005\n"});
  REQUIRE(problems.size() == 1);
  CHECK(has(problems[0].where, "train1.jpg"));
  CHECK(has(problems[0].what, "2 of 8 objects are narrower or lower"));
}

TEST_CASE("a data set without objects to train on cannot be used, one to test with has no score") {
  const auto none = found({"", ""});
  REQUIRE(none.size() == 1);
  CHECK(none[0].fault == DataFault::Unusable);
  CHECK(has(none[0].what, "no object on the 2 pictures to train on"));
  const auto untested = found({kBoth}, {"", "", ""});
  REQUIRE(untested.size() == 1);
  CHECK(untested[0].fault == DataFault::NoObjects);
  CHECK(has(untested[0].what, "no object on the 3 pictures to test with"));
}

TEST_CASE("a class without an object to train on is named") {
  const auto problems = found({"0 0.5 0.5 0.2 0.2\n"});
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].fault == DataFault::NoObjects);
  CHECK(has(problems[0].what, "1 of 2 classes have no object to train on: 1"));
}

TEST_CASE("more objects than the heads of a model take are counted by picture") {
  const std::string yolo =
      "[conv]\nfilters=7\nstride=8\nactivation=linear\n[yolo]\nclasses=2\nanchors=8,9\nmax=3";
  const std::string region =
      "[conv]\nfilters=7\nstride=8\nactivation=linear\n[region]\nclasses=2\nanchors=1,2\nmax=3";
  const std::string grid =
      "[connected]\noutput=7\nactivation=linear\n[detection]\nclasses=2\nside=1\ncoords=4";
  const std::string four = kBoth + "0 0.7 0.7 0.2 0.2\n1 0.7 0.2 0.1 0.1\n";
  for (const std::string& head : {yolo, region, grid}) {
    CAPTURE(head);
    const auto problems = found_by(head, {"1 0.2 0.2 0.1 0.1\n", four, four});
    REQUIRE(problems.size() == 1);
    CHECK(has(problems[0].where, "train1.jpg"));
    CHECK(has(problems[0].what, "2 pictures to train on"));
    CHECK(has(problems[0].what, "up to 4"));
  }
  CHECK(found_by(yolo, {kBoth + "0 0.7 0.7 0.2 0.2\n"}).empty());
  const std::string one_cell =
      "[avg]\n[conv]\nfilters=14\nactivation=linear\n[yolo]\nclasses=2\nnum=2\nanchors=8,9, 20,20";
  CHECK(found_by(one_cell, {kBoth}).empty());
  CHECK(found_by(one_cell, {kBoth + "0 0.7 0.7 0.2 0.2\n"}).size() == 1);
}

TEST_CASE("objects of some pixels of the input are counted where they are many") {
  const std::string yolo =
      "[conv]\nfilters=7\nstride=8\nactivation=linear\n[yolo]\nclasses=2\nanchors=8,9\n";
  const std::string low = "0 0.5 0.5 0.3 0.04\n";     // 2.6 rows
  const std::string narrow = "0 0.5 0.5 0.02 0.3\n";  // 2.6 columns
  for (const std::string& tiny : {low, narrow}) {
    const auto problems = found_by(yolo, {kBoth, tiny});
    REQUIRE(problems.size() == 1);
    CHECK(has(problems[0].where, "train1.jpg"));
    CHECK(has(problems[0].what, "1 of 3 objects to train on"));
    CHECK(has(problems[0].what, "input of 128 x 64"));
    CHECK(found_by(yolo, {kBoth, kBoth, tiny}).empty());
  }
}
