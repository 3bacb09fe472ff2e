#include "engine/data/sets/box_sets.h"

#include <cmath>
#include <fmt/format.h>

#include "tests/engine/data/samples.h"
#include "tests/support/open_dataset.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/inspection/data_summary.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Box;
using engine::DataFault;
using engine::DataProblem;
using engine::Split;
using tests::has;
using tests::input_error_of;
using tests::open_dataset;
using tests::TemporaryFolder;
using tests::write_text;

namespace {

namespace fs = std::filesystem;

void write_small_png(const fs::path& path, std::uint64_t seed) {
  fs::create_directories(path.parent_path());
  tests::write_png(path, 20, 40, 3, tests::random_bytes(20 * 40 * 3, seed));
}

// Three pictures for training and two for testing, with Darknet's label texts; names: cup, ball.
void write_darknet_set(const fs::path& folder) {
  std::string train;
  for (int i = 0; i < 5; ++i) {
    const std::string name = fmt::format("p{}", i);
    write_small_png(folder / "images" / (name + ".png"), static_cast<std::uint64_t>(i));
    write_text(
        folder / "labels" / (name + ".txt"),
        i == 1 ? "" : fmt::format("{} 0.5 0.25 0.2 0.{}\n1 1.0 0.5 0.1 0.5\n", i % 2, i + 1));
    train += i < 3 ? "images/" + name + ".png\n" : "";
  }
  write_text(folder / "train.txt", train);
  write_text(folder / "test.txt", "images/p3.png\nimages/p4.png\n");
  write_text(folder / "d.names", "cup\nball\n");
  write_text(folder / "d.data",
             "classes=2\ntrain=train.txt\nvalid=test.txt\nnames=d.names\nbackup=backup/\n");
}

engine::Dataset listed(const fs::path& path, const engine::ListingOptions& options = {}) {
  return engine::list_dataset(path, Split::Train, 3, options);
}

// The one problem of a data set for training.
DataProblem only_problem(const fs::path& path) {
  const engine::Dataset data = listed(path, {.kind = engine::TargetKind::Boxes});
  REQUIRE(data.problems().size() == 1);
  return data.problems().front();
}

std::string voc_object(const std::string& name,
                       const std::string& box,
                       const std::string& more = "") {
  return "<object>\n<name>" + name + "</name>" + more + box + "</object>\n";
}

std::string voc_box(double left, double top, double right, double bottom) {
  return fmt::format(
      "<bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox>",
      left,
      top,
      right,
      bottom);
}

std::string voc_text(const std::string& objects) {
  return "<annotation>\n<size><width>40</width><height>20</height><depth>3</depth></size>\n" +
         objects + "</annotation>\n";
}

void write_voc_set(const fs::path& folder) {
  for (int i = 0; i < 4; ++i) {
    write_small_png(folder / "JPEGImages" / fmt::format("v{}.png", i),
                    static_cast<std::uint64_t>(i));
  }
  write_text(folder / "Annotations/v0.xml",
             voc_text(voc_object("dog", voc_box(11, 6, 31, 16)) +
                      voc_object("cat", voc_box(1, 1, 5, 5), "<difficult>1</difficult>") +
                      voc_object("person",
                                 voc_box(2, 2, 6, 6),
                                 "<part><name>head</name>" + voc_box(2, 2, 3, 3) + "</part>")));
  write_text(folder / "Annotations/v1.xml", voc_text(""));
  write_text(folder / "Annotations/v2.xml", voc_text(voc_object("dog", voc_box(1, 1, 40, 20))));
  write_text(folder / "Annotations/v3.xml", voc_text(voc_object("cat", voc_box(1, 1, 40, 20))));
  write_text(folder / "ImageSets/Main/train.txt", "v0\nv1\n");
  write_text(folder / "ImageSets/Main/val.txt", "v2\nv3\n");
}

std::string coco_text(const std::string& annotations) {
  return R"({"images": [{"id": 7, "file_name": "c0.png", "width": 40, "height": 20},
                        {"id": 9, "file_name": "c1.png", "width": 40, "height": 20}],
             "categories": [{"id": 1, "name": "cup"}, {"id": 90, "name": "ball"}],
             "annotations": [)" +
         annotations + "]}";
}

std::string coco_object(int image, int category, const std::string& box, int crowd = 0) {
  return fmt::format(R"({{"image_id": {}, "category_id": {}, "bbox": {}, "iscrowd": {}}})",
                     image,
                     category,
                     box,
                     crowd);
}

void write_coco_set(const fs::path& folder) {
  for (const char* half : {"train2017", "val2017"}) {
    write_small_png(folder / half / "c0.png", half[0] == 't' ? 1 : 2);
    write_small_png(folder / half / "c1.png", half[0] == 't' ? 3 : 4);
    write_text(folder / "annotations" / fmt::format("instances_{}.json", half),
               coco_text(coco_object(9, 90, "[10, 5, 20, 10]") + "," +
                         coco_object(9, 1, "[0, 0, 40, 20]", 1)));
  }
}

}  // namespace

TEST_CASE("a Darknet list has the boxes that the label texts beside its pictures say") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  const engine::Dataset data = open_dataset(folder / "d.data", Split::Train, 3);
  REQUIRE(data.has_boxes());
  CHECK(data.class_names() == std::vector<std::string>{"cup", "ball"});
  REQUIRE(data.size() == 3);
  CHECK(data.label(0) == -1);
  REQUIRE(data.boxes(0).size() == 2);
  CHECK(data.boxes(0)[0] == Box{0, 0.5F, 0.25F, 0.2F, 0.1F});
  CHECK(data.boxes(0)[1] == Box{1, 1.0F, 0.5F, 0.1F, 0.5F});  // on the border
  CHECK(data.boxes(1).empty());                               // an empty file: nothing is there
  CHECK(data.boxes(2)[0] == Box{0, 0.5F, 0.25F, 0.2F, 0.3F});
  CHECK(open_dataset(folder / "d.data", Split::Test, 3).boxes(0)[0].label == 1);
}

TEST_CASE("label texts lie in labels instead of images or JPEGImages, or beside the picture") {
  CHECK(engine::label_path("/d/images/train/a.b.jpg") == "/d/labels/train/a.b.txt");
  CHECK(engine::label_path("VOC2007/JPEGImages/0.jpg") == "VOC2007/labels/0.txt");
  CHECK(engine::label_path("/images/x/images/a.png") == "/images/x/labels/a.txt");
  CHECK(engine::label_path("myimages/a.png") == "myimages/a.txt");
  CHECK(engine::label_path("images") == "images.txt");
  const TemporaryFolder folder;
  write_text(folder / "images/a.txt", "");
  CHECK(engine::label_path(folder / "images/a.png") == folder / "images/a.txt");
}

TEST_CASE("what is wrong with a line of a label text is said with its file and line") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  const fs::path text = folder / "labels/p0.txt";
  struct Case {
    const char* line;
    DataFault fault;
    const char* what;
  };
  for (const Case& each :
       {Case{"0 0.5 0.5 0.1", DataFault::BadLabel, "expected five numbers"},
        Case{"0 0.5 0.5 0.1 0.1 0.9", DataFault::BadLabel, "found 6 words"},
        Case{"0 0.5 0.5 0.1 wide", DataFault::BadLabel, "as numbers"},
        Case{"0.5 0.5 0.5 0.1 0.1", DataFault::BadLabel, "a class, counted from 0"},
        Case{"0 nan 0.5 0.1 0.1", DataFault::BadLabel, "x is nan"},
        Case{"0 0.5 0.5 inf 0.1", DataFault::BadLabel, "width is inf"},
        Case{"0 0.5 0.5 0 0.1", DataFault::BadLabel, "a width of 0"},
        Case{"0 0.5 0.5 0.1 -0.1", DataFault::BadLabel, "a height of -0.1"},
        Case{"0 0.5 0.5 0.1 2", DataFault::BadLabel, "a height of 2"},
        Case{"0 1.01 0.5 0.1 0.1", DataFault::BadLabel, "x of the centre is 1.01"},
        Case{"0 0.5 -0.2 0.1 0.1", DataFault::BadLabel, "y of the centre is -0.2"},
        Case{"2 0.5 0.5 0.1 0.1", DataFault::OutOfRange, "class 2: there are 2 classes"},
        Case{"-1 0.5 0.5 0.1 0.1", DataFault::OutOfRange, "class -1"}}) {
    CAPTURE(each.line);
    write_text(text, std::string("\n0 0.5 0.5 0.1 0.1\n") + each.line + "\n");
    const DataProblem problem = only_problem(folder / "d.data");
    CHECK(problem.fault == each.fault);
    CHECK(problem.where == text.string() + ":3");
    INFO(problem.what);
    CHECK(has(problem.what, each.what));
    CHECK(listed(folder / "d.data").size() == 2);  // the picture is left out
  }
}

TEST_CASE("what leaves a picture by rounding is set to its border, and an object counts once") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  write_text(folder / "labels/p0.txt",
             "0 1.0004 -0.0003 1.0005 0.5\n0 1.0004 -0.0003 1.0005 0.5\n");
  const engine::Dataset data = listed(folder / "d.data");
  REQUIRE(data.boxes(0).size() == 1);
  CHECK(data.boxes(0)[0] == Box{0, 1.0F, 0.0F, 1.0F, 0.5F});
  REQUIRE(data.problems().size() == 1);
  CHECK(data.problems()[0].fault == DataFault::SameBox);
  CHECK(data.problems()[0].where == (folder / "labels/p0.txt").string() + ":2");
}

TEST_CASE("a picture without a label text is an error, unless such pictures have no objects") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  fs::remove(folder / "labels/p2.txt");
  const DataProblem problem = only_problem(folder / "d.data");
  CHECK(problem.fault == DataFault::Unlabelled);
  CHECK(problem.where == (folder / "train.txt").string() + ":3");
  CHECK(has(problem.what, (folder / "labels/p2.txt").string()));
  CHECK(has(problem.what, "--allow-unlabelled"));
  const engine::Dataset data = listed(folder / "d.data", {.allow_unlabelled = true});
  CHECK(data.problems().empty());
  REQUIRE(data.size() == 3);
  CHECK(data.boxes(2).empty());
}

TEST_CASE(
    "a Darknet list has boxes where its pictures have label texts, or where they are wanted") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  write_text(folder / "train.txt", "images/cup0.png\n");
  write_text(folder / "test.txt", "images/cup0.png\n");
  write_small_png(folder / "images/cup0.png", 8);
  CHECK_FALSE(listed(folder / "d.data").has_boxes());
  CHECK(listed(folder / "d.data", {.kind = engine::TargetKind::Boxes}).has_boxes());
  write_text(folder / "labels/cup0.txt", "");
  CHECK(listed(folder / "d.data").has_boxes());
  CHECK(listed(folder / "d.data", {.kind = engine::TargetKind::Classes}).label(0) == 0);
  write_text(folder / "d.data", "train=train.txt\nvalid=test.txt\nlabels=d.names\n");
  CHECK_FALSE(listed(folder / "d.data").has_boxes());
}

TEST_CASE("classes without a file of names are called by their numbers") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  write_text(folder / "d.data", "classes=2\ntrain=train.txt\nvalid=test.txt\n");
  CHECK(listed(folder / "d.data").class_names() == std::vector<std::string>{"0", "1"});
  write_text(folder / "d.data", "train=train.txt\nvalid=test.txt\n");
  CHECK(has(input_error_of([&] { (void)listed(folder / "d.data"); }), "the key names"));
}

TEST_CASE(
    "VOC's XML gives the boxes of voc_label.py, and to test with those of difficult objects") {
  const TemporaryFolder folder;
  write_voc_set(folder.path());
  const engine::Dataset data = open_dataset(folder.path(), Split::Train, 3);
  CHECK(data.class_names() == std::vector<std::string>{"cat", "dog", "person"});
  REQUIRE(data.size() == 2);
  REQUIRE(data.boxes(0).size() == 2);
  CHECK(data.boxes(0)[0] == Box{1, 20.0F / 40, 10.0F / 20, 20.0F / 40, 10.0F / 20});
  CHECK(data.boxes(0)[1].label == 2);
  REQUIRE(data.boxes_to_test(0).size() == 3);
  CHECK(data.boxes_to_test(0)[2] == Box{0, 2.0F / 40, 2.0F / 20, 4.0F / 40, 4.0F / 20, true});
  CHECK(data.boxes(1).empty());
  CHECK(data.read(0).shape == partitioner::MapShape{3, 20, 40});
  CHECK(data.place(1) == (folder / "ImageSets/Main/train.txt").string() + ":2");
  const engine::Dataset tested = open_dataset(folder.path(), Split::Test, 3);
  REQUIRE(tested.size() == 2);
  CHECK(tested.boxes(1)[0].label == 0);
}

TEST_CASE("VOC's trainval is for training where there is a test") {
  const TemporaryFolder folder;
  write_voc_set(folder.path());
  write_text(folder / "ImageSets/Main/trainval.txt", "v0\nv1\nv2\n");
  write_text(folder / "ImageSets/Main/test.txt", "v3\n");
  CHECK(open_dataset(folder.path(), Split::Train, 3).size() == 3);
  CHECK(open_dataset(folder.path(), Split::Test, 3).size() == 1);
  fs::remove(folder / "ImageSets/Main/trainval.txt");
  fs::remove(folder / "ImageSets/Main/train.txt");
  CHECK(has(input_error_of([&] { (void)listed(folder.path()); }), "neither train.txt nor"));
}

TEST_CASE("without ImageSets every tenth picture of VOC is for testing") {
  const TemporaryFolder folder;
  write_voc_set(folder.path());
  fs::remove_all(folder / "ImageSets");
  CHECK(open_dataset(folder.path(), Split::Train, 3).size() == 3);
  const engine::Dataset tested = open_dataset(folder.path(), Split::Test, 3);
  REQUIRE(tested.size() == 1);
  CHECK(tested.boxes(0)[0].label == 0);
}

TEST_CASE("what is wrong with VOC's XML is said with its file and line") {
  const TemporaryFolder folder;
  write_voc_set(folder.path());
  const fs::path file = folder / "Annotations/v1.xml";
  struct Case {
    std::string text;
    int line;
    DataFault fault;
    const char* what;
  };
  const std::string good = voc_box(1, 1, 5, 5);
  for (const Case& each : {
           Case{"<annotation>\n<size>", 2, DataFault::BadLabel, "not XML"},
           Case{"", 1, DataFault::BadLabel, "not XML"},
           Case{"<html/>", 1, DataFault::BadLabel, "expected <annotation>"},
           Case{"<annotation/>", 1, DataFault::BadLabel, "<size> is missing"},
           Case{"<annotation>\n<size><width>0</width><height>2</height></size></annotation>",
                2,
                DataFault::BadLabel,
                "a picture of 0 x 2 pixels"},
           Case{"<annotation>\n<size><width>many</width><height>2</height></size></annotation>",
                2,
                DataFault::BadLabel,
                "<width> is \"many\""},
           Case{voc_text("<object>" + good + "</object>"),
                3,
                DataFault::BadLabel,
                "without a <name>"},
           Case{voc_text(voc_object("dog", "")), 3, DataFault::BadLabel, "without a <bndbox>"},
           Case{voc_text("\n" + voc_object("dog", voc_box(9, 1, 5, 5))),
                4,
                DataFault::BadLabel,
                "a width of"},
           Case{voc_text(voc_object("dog", voc_box(60, 1, 90, 5))),
                3,
                DataFault::BadLabel,
                "x of the centre"},
           Case{voc_text(voc_object("dog", "<bndbox><xmin>1</xmin></bndbox>")),
                4,
                DataFault::BadLabel,
                "<ymin> is missing"},
       }) {
    CAPTURE(each.text);
    write_text(file, each.text);
    const engine::Dataset data = listed(folder.path());
    REQUIRE(data.problems().size() >= 1);
    const DataProblem& problem = data.problems().front();
    CHECK(problem.fault == each.fault);
    INFO(problem.what);
    CHECK(problem.where == fmt::format("{}:{}", file.string(), each.line));
    CHECK(has(problem.what, each.what));
  }
  write_text(folder / "classes.txt", "dog\nperson\n");
  write_text(file, voc_text(voc_object("zebra", good)));
  CHECK(has(listed(folder.path()).problems().back().what, "zebra is none of the 2 classes"));
  fs::remove(file);
  CHECK(listed(folder.path()).problems().back().fault == DataFault::Unlabelled);
  CHECK(listed(folder.path(), {.allow_unlabelled = true}).problems().size() == 1);  // v0's cat
}

TEST_CASE("VOC's XML that names entities or files of the machine loads none of them") {
  const TemporaryFolder folder;
  write_voc_set(folder.path());
  write_text(folder / "secret", "dog");
  write_text(folder / "Annotations/v1.xml",
             "<!DOCTYPE annotation [<!ENTITY x SYSTEM \"" + (folder / "secret").string() +
                 "\">]>\n" + voc_text(voc_object("&x;", voc_box(1, 1, 5, 5))));
  const engine::Dataset data = listed(folder.path());
  REQUIRE(data.problems().size() == 1);
  CHECK(has(data.problems()[0].what, "without a <name>"));
}

TEST_CASE("COCO's JSON gives boxes by category, crowds to test with, pictures without objects") {
  const TemporaryFolder folder;
  write_coco_set(folder.path());
  for (const fs::path& path :
       {folder.path(), fs::path(folder / "annotations/instances_train2017.json")}) {
    const engine::Dataset data = open_dataset(path, Split::Train, 3);
    CHECK(data.class_names() == std::vector<std::string>{"cup", "ball"});
    REQUIRE(data.size() == 2);
    CHECK(data.boxes(0).empty());
    REQUIRE(data.boxes(1).size() == 1);
    CHECK(data.boxes(1)[0] == Box{1, 0.5F, 0.5F, 0.5F, 0.5F});
    REQUIRE(data.boxes_to_test(1).size() == 2);
    CHECK(data.boxes_to_test(1)[1] == Box{0, 0.5F, 0.5F, 1, 1, true});
    CHECK(data.name(1) == (folder / "train2017/c1.png").string());
    const engine::Dataset tested = open_dataset(path, Split::Test, 3);
    CHECK(tested.name(1) == (folder / "val2017/c1.png").string());
    CHECK(tested.read(1).shape.cols == 40);
  }
}

TEST_CASE("what is wrong with COCO's boxes is said with the annotation's place") {
  const TemporaryFolder folder;
  write_coco_set(folder.path());
  const fs::path file = folder / "annotations/instances_train2017.json";
  const auto problem_of = [&](const std::string& annotations) {
    write_text(file, coco_text(annotations));
    const engine::Dataset data = listed(folder.path());
    REQUIRE(data.problems().size() == 1);
    CHECK(data.problems()[0].where == file.string());
    return data.problems()[0];
  };
  const DataProblem outside = problem_of(coco_object(7, 1, "[60, 1, 5, 5]"));
  CHECK(outside.fault == DataFault::BadLabel);
  CHECK(has(outside.what, "annotations[0], on c0.png: x of the centre"));
  CHECK(problem_of(coco_object(7, 1, "[6, 1, 5, 0]")).fault == DataFault::LeftOut);
  const auto bad = [&](const std::string& annotations, const char* what) {
    const DataProblem problem = problem_of(annotations);
    CHECK(problem.fault == DataFault::BadLabel);
    CHECK(has(problem.what, what));
  };
  bad(coco_object(7, 2, "[1, 1, 5, 5]"), "annotations[0].category_id: 2 is none of");
  bad(coco_object(1, 1, "[1, 1, 5, 5]"), "annotations[0].image_id: 1 is none of");
  bad(coco_object(7, 1, "[1, 1, 5]"), "annotations[0].bbox: expected four numbers");
  bad(coco_object(7, 1, "[1, 1, -5, 5]"), "a box of -5 x 5");
  write_text(file, coco_text("{"));
  CHECK(has(input_error_of([&] { (void)listed(folder.path()); }), "not JSON"));
}

TEST_CASE("faulty annotations of COCO leave out their pictures alone, and each is listed") {
  const TemporaryFolder folder;
  write_coco_set(folder.path());
  write_text(
      folder / "annotations/instances_train2017.json",
      coco_text(coco_object(7, 1, "[1, 1, -5, 5]") + "," + coco_object(7, 1, "[50, 1, 5, 5]") +
                "," + coco_object(9, 1, "[1, 1, 5, 5]") + "," + coco_object(7, 3, "[1, 1, 5, 5]") +
                "," + R"({"image_id": 9, "category_id": 90, "bbox": [0, 0, 9, 9], "area": null})"));
  const engine::Dataset data = listed(folder.path());
  REQUIRE(data.size() == 1);
  CHECK(data.name(0) == (folder / "train2017/c1.png").string());
  CHECK(data.boxes(0).size() == 2);
  REQUIRE(data.problems().size() == 3);
  CHECK(has(data.problems()[0].what, "annotations[0].bbox"));
  CHECK(has(data.problems()[1].what, "annotations[3].category_id"));
  CHECK(has(data.problems()[2].what, "annotations[1], on c0.png"));
}

TEST_CASE("a lone JSON file in COCO's format keeps every tenth picture for testing") {
  const TemporaryFolder folder;
  write_small_png(folder / "c0.png", 1);
  write_small_png(folder / "c1.png", 2);
  write_text(folder / "mine.json", coco_text(coco_object(9, 90, "[10, 5, 20, 10]")));
  CHECK(open_dataset(folder / "mine.json", Split::Train, 3).size() == 1);
  CHECK(open_dataset(folder / "mine.json", Split::Test, 3).boxes(0).size() == 1);
}

TEST_CASE("a data set with boxes is refused where classes are wanted, and the other way round") {
  const TemporaryFolder folder;
  write_coco_set(folder / "coco");
  const auto refusal = [&](const fs::path& path, engine::TargetKind kind) {
    return input_error_of([&] { (void)listed(path, {.kind = kind}); });
  };
  CHECK(has(refusal(folder / "coco", engine::TargetKind::Classes), "needs a head"));
  write_small_png(folder / "folders/cat/a.png", 1);
  CHECK(has(refusal(folder / "folders", engine::TargetKind::Boxes), "with boxes around them"));
}

TEST_CASE("boxes stay with their pictures where some are taken out, and count in the digest") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  engine::Dataset data = listed(folder / "d.data");
  const std::uint64_t before = data.digest();
  CHECK(data.digest() == listed(folder / "d.data").digest());
  CHECK(class_sizes(data) == std::vector<Index>{2, 2});
  const std::vector<Box> last(data.boxes(2).begin(), data.boxes(2).end());
  data.drop({0, 1});
  REQUIRE(data.size() == 1);
  CHECK(std::vector<Box>(data.boxes(0).begin(), data.boxes(0).end()) == last);
  write_text(folder / "labels/p0.txt", "0 0.5 0.25 0.2 0.1\n1 1.0 0.5 0.1 0.25\n");
  CHECK(listed(folder / "d.data").digest() != before);
}

namespace {

// A picture of 40 x 20 stored pixels, which EXIF turns, white in columns 4 to 12 and rows 2 to 8.
void write_turned(const fs::path& path, int orientation) {
  constexpr int kRows = 20;
  constexpr int kCols = 40;
  tests::Bytes pixels(std::size_t{kRows} * kCols);
  for (int row = 2; row < 8; ++row) {
    std::fill_n(pixels.begin() + row * kCols + 4, 8, std::uint8_t{255});
  }
  fs::create_directories(path.parent_path());
  tests::write_png(path, kRows, kCols, 1, pixels);
  tests::write_bytes(path, tests::turned_png(tests::read_back(path), orientation));
}

// The box of what is white on a picture as it is used.
Box white_box(const fs::path& path) {
  const engine::Picture picture = engine::read_picture_file(path, 1);
  Index top = picture.held_rows;
  Index left = picture.held_cols;
  Index bottom = 0;
  Index right = 0;
  for (Index row = 0; row < picture.held_rows; ++row) {
    for (Index col = 0; col < picture.held_cols; ++col) {
      if (picture.value(0, row, col) > 0) {
        top = std::min(top, row);
        left = std::min(left, col);
        bottom = std::max(bottom, row + 1);
        right = std::max(right, col + 1);
      }
    }
  }
  const auto fraction = [](Index twice, Index whole) {
    return static_cast<float>(twice) / static_cast<float>(2 * whole);
  };
  return {0,
          fraction(left + right, picture.shape.cols),
          fraction(top + bottom, picture.shape.rows),
          fraction(2 * (right - left), picture.shape.cols),
          fraction(2 * (bottom - top), picture.shape.rows)};
}

void check_same_place(const Box& box, const Box& other) {
  CHECK(box.centre_x == doctest::Approx(other.centre_x));
  CHECK(box.centre_y == doctest::Approx(other.centre_y));
  CHECK(box.width == doctest::Approx(other.width));
  CHECK(box.height == doctest::Approx(other.height));
}

}  // namespace

TEST_CASE("boxes of a picture as it is stored are turned with it, which is said once") {
  for (int orientation = 5; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const TemporaryFolder folder;
    write_voc_set(folder.path());
    write_coco_set(folder.path() / "coco");
    for (const char* name : {"v0", "v1"}) {
      write_turned(folder / "JPEGImages" / fmt::format("{}.png", name), orientation);
      write_text(folder / "Annotations" / fmt::format("{}.xml", name),
                 voc_text(voc_object("dog", voc_box(5, 3, 13, 9))));
    }
    write_turned(folder / "coco/train2017/c1.png", orientation);
    write_text(folder / "coco/annotations/instances_train2017.json",
               coco_text(coco_object(9, 90, "[4, 2, 8, 6]")));
    const engine::Dataset voc = listed(folder.path());
    const engine::Dataset coco = listed(folder / "coco");
    REQUIRE(voc.size() == 2);
    check_same_place(voc.boxes(1)[0], white_box(folder / "JPEGImages/v1.png"));
    check_same_place(coco.boxes(1)[0], white_box(folder / "coco/train2017/c1.png"));
    for (const engine::Dataset* data : {&voc, &coco}) {
      REQUIRE(data->problems().size() == 1);
      CHECK(data->problems()[0].fault == DataFault::TurnedBox);
    }
    CHECK(has(voc.problems()[0].what, "the boxes of 2 pictures, this one first"));
  }
}

TEST_CASE("boxes of a picture as it is used stay, and those of one that keeps its sides") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const TemporaryFolder folder;
    write_coco_set(folder.path());
    write_turned(folder / "train2017/c1.png", orientation);
    const bool upright = orientation < 5;
    std::string text = coco_text(coco_object(9, 90, "[4, 2, 8, 6]"));
    if (!upright) {
      text.replace(text.rfind(R"("width": 40, "height": 20)"), 25, R"("width": 20, "height": 40)");
    }
    write_text(folder / "annotations/instances_train2017.json", text);
    const engine::Dataset data = listed(folder.path());
    CHECK(data.problems().empty());
    check_same_place(data.boxes(1)[0],
                     upright ? Box{0, 0.2F, 0.25F, 0.2F, 0.3F} : Box{0, 0.4F, 0.125F, 0.4F, 0.15F});
  }
}

TEST_CASE("a picture of other proportions than its boxes were given for cannot be used") {
  const TemporaryFolder folder;
  write_voc_set(folder.path());
  const auto with_size = [&](int width, int height) {
    std::string text = voc_text(voc_object("dog", voc_box(1, 1, 9, 9)));
    text.replace(text.find("<width>"),
                 text.find("<depth>") - text.find("<width>"),
                 fmt::format("<width>{}</width><height>{}</height>", width, height));
    write_text(folder / "Annotations/v0.xml", text);
    return listed(folder.path());
  };
  for (const auto& [width, height] : {std::pair{20, 40}, std::pair{40, 40}, std::pair{40, 23}}) {
    const engine::Dataset data = with_size(width, height);
    CHECK(data.size() == 1);
    REQUIRE(data.problems().size() == 1);
    CHECK(data.problems()[0].fault == DataFault::BadLabel);
    CHECK(has(data.problems()[0].where, "JPEGImages/v0.png"));
    CHECK(has(data.problems()[0].what,
              fmt::format("{} x {} pixels, and this one has 40 x 20", width, height)));
  }
  CHECK(with_size(400, 201).problems().empty());  // given for a larger copy
  write_turned(folder / "JPEGImages/v0.png", 6);
  CHECK(has(with_size(40, 40).problems()[0].what, "20 x 40, turned as its EXIF"));
}

TEST_CASE("where no object has a class, what is wrong with the files is said") {
  const TemporaryFolder folder;
  write_voc_set(folder.path());
  for (int i = 0; i < 4; ++i) {
    std::string text = voc_text(voc_object("dog", voc_box(1, 1, 9, 9)));
    text.replace(text.find("<width>40"), 9, "<width>0");
    write_text(folder / "Annotations" / fmt::format("v{}.xml", i), text);
  }
  CHECK(has(listed(folder.path()).problems()[0].what, "a picture of 0 x 20 pixels"));
  for (int i = 0; i < 4; ++i) {
    write_text(folder / "Annotations" / fmt::format("v{}.xml", i), "<annotation>");
  }
  CHECK(has(input_error_of([&] { (void)listed(folder.path()); }), "v0.xml:1: not XML"));
}

TEST_CASE("pictures that share a file of boxes, or have two, are counted") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  write_small_png(folder / "images/p0.jpg.png", 9);  // has a text of its own
  write_text(folder / "labels/p0.jpg.txt", "");
  fs::copy(folder / "images/p0.png", folder / "images/p0.PNG");
  write_text(folder / "train.txt",
             "images/p0.png\nimages/p0.PNG\nimages/p0.jpg.png\nimages/p0.png\n");
  const DataProblem shared = only_problem(folder / "d.data");
  CHECK(shared.fault == DataFault::SharedLabels);
  CHECK(has(shared.what, "1 pictures share the label text"));
  CHECK(has(shared.what, "labels/p0.txt is of images/p0.png and of images/p0.PNG"));
  write_text(folder / "train.txt", "images/p0.png\nimages/p2.png\n");
  write_text(folder / "images/p2.txt", "");
  CHECK(has(only_problem(folder / "d.data").what, "1 pictures have two label texts"));

  write_voc_set(folder / "voc");
  fs::copy(folder / "images/p0.png", folder / "voc/JPEGImages/v0.PNG");
  CHECK(has(only_problem(folder / "voc").what, "v0.PNG counts, v0.png is left out"));

  write_coco_set(folder / "coco");
  std::string text = coco_text("");
  text.replace(text.find("c1.png"), 6, "c0.png");
  write_text(folder / "coco/annotations/instances_train2017.json", text);
  CHECK(has(only_problem(folder / "coco").what, "7 and 9 are c0.png"));
}

TEST_CASE("names that there is no class for are said") {
  const TemporaryFolder folder;
  write_darknet_set(folder.path());
  write_text(folder / "d.names", "# things\ncup\nball\n");
  const DataProblem problem = only_problem(folder / "d.data");
  CHECK(problem.fault == DataFault::SpareName);
  CHECK(has(problem.what, "3 names for classes=2: the first ones count, from # things to cup"));
}
