// Where programs that draw boxes put pictures and what is on them.

#include <fmt/format.h>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/inspection/data_summary.h"
#include "engine/data/sets/box_sets.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Box;
using engine::DataFault;
using engine::Split;
using tests::has;
using tests::input_error_of;
using tests::TemporaryFolder;
using tests::write_text;

namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

constexpr Box kMiddle{0, 0.5F, 0.5F, 0.5F, 0.5F};

void write_one_png(const fs::path& path) {
  fs::create_directories(path.parent_path());
  tests::write_png(path, 20, 40, 3, tests::random_bytes(20 * 40 * 3, 1));
}

void write_xml(const fs::path& path, const std::string& name) {
  write_text(path,
             "<annotation><size><width>40</width><height>20</height></size><object><name>" + name +
                 "</name><bndbox><xmin>11</xmin><ymin>6</ymin><xmax>31</xmax><ymax>16</ymax>"
                 "</bndbox></object></annotation>");
}

// COCO's JSON of one picture with an object in its middle.
void write_json(const fs::path& path, const std::string& picture) {
  write_text(path,
             R"({"annotations": [{"image_id": 7, "category_id": 1, "bbox": [10, 5, 20, 10]}],
                 "licenses": [{"id": 1}], "images": [{"id": 7, "file_name": ")" +
                 picture + R"(", "width": 40, "height": 20}],
                 "categories": [{"id": 1, "name": "cup"}, {"id": 2, "name": "ball"}]})");
}

engine::Dataset boxes_of(const fs::path& path, Split split) {
  engine::Dataset data = engine::list_dataset(path, split, 3, {.kind = engine::TargetKind::Boxes});
  for (const engine::DataProblem& problem : data.problems()) {
    INFO(problem.what);
    CHECK(!is_error(problem.fault));
  }
  for (Index item = 0; item < data.size(); ++item) {
    CHECK(data.shape(item).cols == 40);  // it is there
  }
  return data;
}

std::string refusal(const fs::path& path, engine::TargetKind kind = engine::TargetKind::Either) {
  return input_error_of([&] { (void)engine::list_dataset(path, Split::Train, 3, {.kind = kind}); });
}

}  // namespace

TEST_CASE("XML beside its pictures is read, every tenth for testing") {
  const TemporaryFolder folder;
  for (int i = 0; i < 12; ++i) {
    write_one_png(folder / fmt::format("a{:02}.PNG", i));
    write_xml(folder / fmt::format("a{:02}.{}", i, i % 2 == 0 ? "xml" : "XML"),
              i % 3 == 0 ? "cup" : "ball");
  }
  const engine::Dataset data = boxes_of(folder.path(), Split::Train);
  CHECK(data.class_names() == Names{"ball", "cup"});
  CHECK(data.files()->left_out.empty());
  REQUIRE(data.size() == 11);
  CHECK(data.boxes(1)[0] == kMiddle);
  CHECK(boxes_of(folder.path(), Split::Test).name(0) == (folder / "a09.PNG").string());
  fs::remove(folder / "a01.PNG");  // the list names it all the same
  CHECK(engine::list_dataset(folder.path(), Split::Train, 3).size() == 11);
}

TEST_CASE("XML beside its pictures in a folder for each half is read, with the classes of both") {
  const TemporaryFolder folder;
  for (const auto& [half, name] : {std::pair{"train", "cup"}, {"valid", "ball"}, {"test", "cup"}}) {
    write_one_png(folder / half / "1.png");
    write_xml(folder / half / "1.xml", name);
  }
  CHECK(boxes_of(folder.path(), Split::Train).class_names() == Names{"cup"});
  const engine::Dataset tested = boxes_of(folder.path(), Split::Test);
  CHECK(tested.name(0) == (folder / "test/1.png").string());
  CHECK(has(tested.problems()[0].what, "only train and test are used, not valid"));
  fs::remove_all(folder / "test");
  const engine::Dataset valid = boxes_of(folder.path(), Split::Test);
  CHECK(valid.class_names() == Names{"ball", "cup"});
  CHECK(valid.boxes(0)[0].label == 0);
  const engine::Dataset trained = boxes_of(folder.path(), Split::Train);
  CHECK(trained.boxes(0)[0].label == 1);
}

TEST_CASE("COCO's JSON beside the pictures of each half is read") {
  const TemporaryFolder folder;
  for (const char* half : {"train", "valid"}) {
    write_one_png(folder / half / "1.png");
    write_json(folder / half / "_annotations.coco.json", "1.png");
  }
  const engine::Dataset trained = boxes_of(folder.path(), Split::Train);
  CHECK(trained.boxes(0)[0] == kMiddle);
  CHECK(boxes_of(folder.path(), Split::Test).name(0) == (folder / "valid/1.png").string());
  fs::remove(folder / "valid/_annotations.coco.json");
  CHECK(has(refusal(folder.path()), (folder / "valid").string() + ": there is no _annotations"));
}

TEST_CASE("COCO's files are of the halves that their names say, whatever they are called else") {
  struct Case {
    const char* training;
    const char* testing;
    const char* folder;
  };
  for (const Case& each : {Case{"train", "val", "images"},
                           Case{"instances_Train", "instances_Validation", "images"},
                           Case{"person_train_v2", "person_test_v2", "data"},
                           Case{"instances_train2017", "instances_val2017", "."}}) {
    CAPTURE(each.training);
    const TemporaryFolder folder;
    for (const char* half : {each.training, each.testing}) {
      write_one_png(folder / each.folder / (std::string(half) + ".png"));
      write_json(folder / "annotations" / (std::string(half) + ".json"),
                 std::string(half) + ".png");
    }
    for (const fs::path& path :
         {folder.path(), folder / "annotations" / (std::string(each.training) + ".json")}) {
      CHECK(has(boxes_of(path, Split::Train).name(0), std::string(each.training) + ".png"));
      CHECK(has(boxes_of(path, Split::Test).name(0), std::string(each.testing) + ".png"));
    }
  }
}

TEST_CASE("COCO's files that are of no half are parts of one set") {
  const TemporaryFolder folder;
  for (const char* name : {"day", "night"}) {
    write_one_png(folder / "images" / (std::string(name) + ".png"));
    write_json(folder / "annotations" / fmt::format("instances_{}.json", name),
               std::string(name) + ".png");
  }
  write_text(folder / "annotations/captions_day.json", "{}");
  CHECK(has(boxes_of(folder.path(), Split::Train).name(0), "day.png"));
  CHECK(has(boxes_of(folder.path(), Split::Test).name(0), "night.png"));
  write_text(folder / "annotations/instances_night.json",
             R"({"images": [], "annotations": [], "categories": [{"id": 1, "name": "tent"}]})");
  CHECK(has(refusal(folder.path()), "instances_night.json: categories: others than"));
}

TEST_CASE(
    "a .data file may name what lies beside it as in a folder data, and nothing for testing") {
  const TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 10; ++i) {
    const std::string name = fmt::format("obj_train_data/{}", i);
    write_one_png(folder / (name + ".png"));
    write_text(folder / (name + ".txt"), "0 0.5 0.5 0.5 0.5\n");
    list += "data/" + name + ".png\n";
  }
  write_text(folder / "train.txt", list);
  write_text(folder / "obj.names", "cup\n");
  write_text(folder / "obj.data",
             "classes = 1\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n");
  CHECK(engine::has_label_texts(folder / "obj.data"));
  CHECK(boxes_of(folder / "obj.data", Split::Train).size() == 9);
  CHECK(boxes_of(folder / "obj.data", Split::Test).name(0) ==
        (folder / "obj_train_data/9.png").string());
}

TEST_CASE("of a folder without labels it is said what is missing") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "x/train");
  CHECK(has(refusal(folder / "x"), (folder / "x/train").string() + ": there are no pictures here"));
  fs::create_directories(folder / "x/valid/cup");
  CHECK(has(refusal(folder / "x"), (folder / "x/train").string() + ": there are no pictures here"));
  write_text(folder / "x/train/1.HEIC", "");
  CHECK(has(refusal(folder / "x"),
            "but 1 .heic file): convert .heic files to JPEG, for example "
            "with heif-convert"));
  for (const char* place : {"x/train", "y"}) {
    write_one_png(folder / place / "1.png");
    for (const auto kind :
         {engine::TargetKind::Either, engine::TargetKind::Classes, engine::TargetKind::Boxes}) {
      const std::string why =
          refusal((folder / place).parent_path() / (place[0] == 'x' ? "" : "y"), kind);
      CHECK(has(why, (folder / place).string() + ": nothing says what is on the 1 picture here"));
      CHECK(has(why, "_annotations.coco.json is missing"));
    }
  }
  fs::create_directories(folder / "z/train/cup");
  write_text(folder / "z/train/cup/1.heic", "");
  write_one_png(folder / "z/train/ball/1.png");
  const engine::Dataset data = engine::list_dataset(folder / "z", Split::Train, 3);
  REQUIRE(data.problems().size() == 1);
  CHECK(data.problems()[0].fault == DataFault::EmptyClass);
  CHECK(has(data.problems()[0].what, "but 1 .heic file: convert"));
}

TEST_CASE("XML with a tag as long as no object's is refused before attributes are compared") {
  const TemporaryFolder folder;
  std::string tag = "<annotation>\n<object";
  for (int i = 0; i < 1000; ++i) {
    tag += fmt::format(" a{}=\"\"", i);
  }
  const auto problem = [&](const std::string& text) {
    write_text(folder / "a.xml", text);
    const engine::VocAnnotation read = engine::read_voc_annotation(folder / "a.xml");
    REQUIRE(read.problems.size() == 1);
    return read.problems[0].where + ": " + read.problems[0].what;
  };
  CHECK(has(problem(tag + "/></annotation>"), "a.xml:2: a tag of more than 4096 bytes"));
  CHECK(
      has(problem("<!DOCTYPE a [<!ATTLIST a b CDATA \"\">]><annotation/>"), "declares attributes"));
}
