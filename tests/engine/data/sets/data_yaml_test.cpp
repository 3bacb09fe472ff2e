// Data sets as Ultralytics, Roboflow, CVAT and Label Studio write them.

#include <algorithm>
#include <fmt/format.h>
#include <map>

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

#ifdef TESSERA_HAS_YAML

namespace {

namespace fs = std::filesystem;

using ClassNames = std::vector<std::string>;

constexpr const char* kNames = "names: [cup, ball]\n";

void write_labelled(const fs::path& picture, const std::string& text = "1 0.5 0.5 0.2 0.4\n") {
  fs::create_directories(picture.parent_path());
  tests::write_png(picture, 4, 8, 3, tests::random_bytes(4 * 8 * 3, 1));
  write_text(engine::label_path(picture), text);
}

engine::Dataset opened(const fs::path& path, Split split = Split::Train) {
  return engine::list_dataset(path, split, 3, {.kind = engine::TargetKind::Boxes});
}

std::string refused(const fs::path& path, Split split = Split::Train) {
  return input_error_of([&] { (void)opened(path, split); });
}

// Everything that is said about it.
std::string said(const engine::Dataset& data, DataFault fault = DataFault::Assumed) {
  std::string all;
  for (const engine::DataProblem& problem : data.problems()) {
    all += problem.fault == fault ? problem.where + ": " + problem.what + "\n" : "";
  }
  return all;
}

ClassNames pictures(const engine::Dataset& data) {
  ClassNames names;
  for (Index item = 0; item < data.size(); ++item) {
    CHECK(data.shape(item).cols == 8);  // it is there
    names.push_back(fs::path(data.name(item)).filename().string());
  }
  return names;
}

// A picture for training in a set of Roboflow's layout, and its text.
void write_one(const fs::path& folder, const std::string& text, const std::string& more = "") {
  write_labelled(folder / "train/images/a.png", text);
  write_labelled(folder / "valid/images/b.png");
  write_text(folder / "data.yaml",
             std::string("train: train/images\nval: valid/images\n") + kNames + more);
}

}  // namespace

TEST_CASE("Roboflow's folders are read, ../ left out where only that leads to them") {
  const TemporaryFolder folder;
  for (const char* half : {"train", "valid", "test"}) {
    write_labelled(folder / "set" / half / "images" / (std::string(half) + ".png"));
  }
  const fs::path file = folder / "set/data.yaml";
  write_text(file,
             "train: ../train/images\nval: ../valid/images\ntest: ../test/images\n\nnc: 2\n"
             "names: ['cup', 'ball']\n\nroboflow:\n  workspace: w\n  version: 1\n");
  for (const fs::path& path : {file, folder / "set"}) {
    const engine::Dataset data = opened(path);
    CHECK(pictures(data) == ClassNames{"train.png"});
    CHECK(data.class_names() == ClassNames{"cup", "ball"});
    CHECK(data.boxes(0)[0] == Box{1, 0.5F, 0.5F, 0.2F, 0.4F});
    CHECK(has(said(data), "there is no ../train/images, ../valid/images, ../test/images here"));
    CHECK(has(said(data), "only train and val are used, not test"));
    CHECK(pictures(opened(path, Split::Test)) == ClassNames{"valid.png"});
  }
  write_labelled(folder / "train/images/beside.png");
  CHECK(pictures(opened(file)) == ClassNames{"beside.png"});
}

TEST_CASE("a correct data.yaml with halves says nothing") {
  const TemporaryFolder folder;
  write_one(folder.path(), "0 0.5 0.5 0.1 0.1\n");
  CHECK(opened(folder.path()).problems().empty());
  CHECK(opened(folder.path(), Split::Test).problems().empty());
}

TEST_CASE("CVAT's list is read from its own folder or path, and data/ before it left out") {
  const TemporaryFolder folder;
  for (const char* name : {"a.png", "b.png", "c.png", "d.png"}) {
    write_labelled(folder / "set/images/train" / name);
  }
  write_text(folder / "set/lists/train.txt",
             "images/train/a.png\n./../images/train/b.png\ndata/images/train/c.png\nnotes\n" +
                 (folder / "set/images/train/d.png").string() + "\n");
  for (const std::string& path : {std::string("./set"), (folder / "set").string()}) {
    write_text(
        folder / "mine.yml",
        "path: " + path + "\ntrain: lists/train.txt\nval: images\nnames:\n  1: ball\n  0: cup\n");
    const engine::Dataset data = opened(folder / "mine.yml");
    CHECK(pictures(data) == ClassNames{"a.png", "b.png", "c.png", "d.png"});
    CHECK(data.class_names() == ClassNames{"cup", "ball"});
    CHECK(data.boxes(2).size() == 1);
    CHECK(has(said(data, DataFault::Unlabelled), "train.txt:4: this line is not the path"));
    CHECK(data.place(2) == (folder / "./set/lists/train.txt").lexically_normal().string() + ":3");
  }
}

TEST_CASE("without val a tenth of the pictures, by their names, is for testing") {
  const TemporaryFolder folder;
  const auto write = [&](int i) { write_labelled(folder / fmt::format("images/p{:03}.png", i)); };
  for (int i = 0; i < 60; ++i) {
    write(2 * i);
  }
  write_text(folder / "data.yaml", std::string("train: images\n") + kNames);
  const ClassNames trained = pictures(opened(folder.path()));
  const ClassNames tested = pictures(opened(folder.path(), Split::Test));
  CHECK(trained.size() + tested.size() == 60);
  CHECK((tested.size() >= 2 && tested.size() <= 12));
  CHECK(has(said(opened(folder.path())), "there is no val: every tenth picture"));
  for (int i = 0; i < 60; ++i) {
    write(2 * i + 1);
  }
  write_text(folder / "data.yaml", std::string("train: images/\nval: ./images\n") + kNames);
  const ClassNames more = pictures(opened(folder.path(), Split::Test));
  CHECK(more.size() > tested.size());
  CHECK(std::includes(more.begin(), more.end(), tested.begin(), tested.end()));
  CHECK(has(said(opened(folder.path())), "val is the same as train: every tenth picture"));
}

TEST_CASE("of few pictures one is for testing, of one none") {
  for (const int count : {1, 2, 3, 5}) {
    const TemporaryFolder folder;
    for (int i = 0; i < count; ++i) {
      write_labelled(folder / fmt::format("images/{}.png", i));
    }
    write_text(folder / "data.yaml", std::string("train: images\n") + kNames);
    const Index tested = opened(folder.path(), Split::Test).size();
    CHECK((tested >= 1 || count == 1));
    CHECK(opened(folder.path()).size() == count - tested);
    CHECK(tested < count);
  }
}

TEST_CASE("test is for testing where there is no val, and several folders are one set") {
  const TemporaryFolder folder;
  for (const char* part : {"one", "two", "three"}) {
    write_labelled(folder / part / (std::string(part) + ".png"));
  }
  const std::string train = "train: [one, two]\n";
  for (const std::string& val : {std::string(), std::string("val:\n"), "val" + train.substr(5)}) {
    write_text(folder / "data.yaml", train + val + "test: three\n" + kNames);
    CHECK(pictures(opened(folder.path())) == ClassNames{"one.png", "two.png"});
    const engine::Dataset tested = opened(folder.path(), Split::Test);
    CHECK(pictures(tested) == ClassNames{"three.png"});
    CHECK(has(said(tested), "test is for testing"));
  }
}

TEST_CASE("of a polygon the box around it counts, corners set to the border by rounding alone") {
  const TemporaryFolder folder;
  write_one(folder.path(),
            "0 0.1 0.2 0.5 0.25 0.3 0.6\n"           // three corners
            "1 0.2 0.1 0.4 0.3 0.3 0.4 0.1 0.2\n"    // an oriented box
            "0 -0.0008 0.5 1.0009 0.5 0.5 1.0005\n"  // rounding
            "1 -0.1 0.2 0.3 0.2 0.3 0.4 -0.1 0.4\n"  // sticks out
            "0 0.5 0.5 0.1 0.1\n");
  const engine::Dataset data = opened(folder.path());
  REQUIRE(data.size() == 1);
  const std::vector<Box> expected{{0, 0.3F, 0.4F, 0.4F, 0.4F},
                                  {1, 0.25F, 0.25F, 0.3F, 0.3F},
                                  {0, 0.5F, 0.75F, 1, 0.5F},
                                  {1, 0.1F, 0.3F, 0.4F, 0.2F},
                                  {0, 0.5F, 0.5F, 0.1F, 0.1F}};
  REQUIRE(data.boxes(0).size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(data.boxes(0)[i].label == expected[i].label);
    CHECK(data.boxes(0)[i].centre_x == doctest::Approx(expected[i].centre_x));
    CHECK(data.boxes(0)[i].centre_y == doctest::Approx(expected[i].centre_y));
    CHECK(data.boxes(0)[i].width == doctest::Approx(expected[i].width));
    CHECK(data.boxes(0)[i].height == doctest::Approx(expected[i].height));
  }
  CHECK(has(said(data), "data.yaml: 4 objects for training given by corners, in"));
  CHECK(std::ssize(data.problems()) == 1);
}

TEST_CASE("of a pose its box counts, and a line has as many numbers as kpt_shape says") {
  const TemporaryFolder folder;
  const std::string pose = "0 0.5 0.5 0.1 0.2 0.4 0.4 2.000000 0 0 0\n";
  write_one(folder.path(), pose + "1 0.2 0.2 0.1 0.1\n", "kpt_shape: [2, 3]\n");
  const engine::Dataset data = opened(folder.path());
  REQUIRE(data.boxes(0).size() == 2);
  CHECK(data.boxes(0)[0] == Box{0, 0.5F, 0.5F, 0.1F, 0.2F});
  write_one(folder.path(), "0 0.1 0.2 0.5 0.25 0.3 0.6\n", "kpt_shape: [2, 3]\n");
  CHECK(has(said(opened(folder.path()), DataFault::BadLabel),
            "a.txt:1: expected five numbers (class x y width height) or, with the keypoints of "
            "kpt_shape, 11, found 7 words"));
}

TEST_CASE("lines of other lengths are faults of their picture, with file and line") {
  const TemporaryFolder folder;
  struct Case {
    const char* line;
    const char* what;
  };
  for (const Case& each :
       {Case{"0 0.5 0.5 0.1", "five numbers (class x y width height) or those of a polygon"},
        Case{"0 0.5 0.5 0.1 0.1 0.2", "found 6 words"},
        Case{"0 0.1 0.1 0.2 0.2 0.3 0.3 0.4", "found 8 words"},
        Case{"0 0.1 0.1 0.2 0.2 0.3 x", "x and y of each corner as numbers"},
        Case{"0 0.1 0.1 0.2 0.2 0.3 nan", "x is nan"},
        Case{"0 10 10 20 20 30 30", "x of the centre is 20"},
        Case{"0 -0.5 0.1 1.5 0.2 0.3 0.3", "a width of 2"},
        Case{"0 0.3 0.1 0.3 0.2 0.3 0.3", "a width of 0"}}) {
    CAPTURE(each.line);
    write_one(folder.path(), std::string("0 0.5 0.5 0.1 0.1\n") + each.line + "\n");
    const engine::Dataset data = opened(folder.path());
    CHECK(data.size() == 0);
    INFO(said(data, DataFault::BadLabel));
    CHECK(has(said(data, DataFault::BadLabel), each.what));
    CHECK(has(said(data, DataFault::BadLabel), "train/labels/a.txt:2: "));
  }
}

TEST_CASE("nothing is on pictures without a label text, unless no picture has one") {
  const TemporaryFolder folder;
  write_one(folder.path(), "0 0.5 0.5 0.1 0.1\n");
  write_labelled(folder / "train/images/c.png");
  fs::remove(folder / "train/labels/c.txt");
  fs::remove(folder / "valid/labels/b.txt");
  const engine::Dataset data = opened(folder.path());
  CHECK((data.size() == 2 && data.boxes(1).empty()));
  CHECK(has(said(data), "1 picture for training without a label text, "));
  CHECK(has(said(opened(folder.path(), Split::Test)), "1 picture for testing without"));
  fs::remove(folder / "train/labels/a.txt");
  for (const Split split : {Split::Train, Split::Test}) {
    CHECK(has(refused(folder.path(), split), "data.yaml: no picture has a label text"));
  }
}

TEST_CASE("Label Studio's folder is read with the names of classes.txt or notes.json") {
  const TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) {
    write_labelled(folder / fmt::format("images/{}.png", i));
  }
  write_text(
      folder / "notes.json",
      R"({"categories": [{"id": 1, "name": "ball"}, {"id": 0, "name": "cup"}], "info": {}})");
  CHECK(opened(folder.path()).class_names() == ClassNames{"cup", "ball"});
  CHECK(has(said(opened(folder.path())), "there is no val: every tenth"));
  for (const char* text : {"",
                           "{",
                           "{}",
                           R"({"categories": []})",
                           R"({"categories": [1]})",
                           R"({"categories": [{"id": 1, "name": "a"}]})",
                           R"({"categories": [{"id": -1, "name": "a"}]})",
                           R"({"categories": [{"id": 0, "name": 3}]})",
                           R"({"categories": [{"id": 0, "name": "a\nb"}]})",
                           R"({"categories": [{"id": 0, "name": "a"}, {"id": 0, "name": "b"}]})"}) {
    CAPTURE(text);
    write_text(folder / "notes.json", text);
    CHECK(has(refused(folder.path()), "notes.json: "));
  }
  write_text(folder / "classes.txt", "a\nb\n");
  CHECK(opened(folder.path()).class_names() == ClassNames{"a", "b"});
  write_labelled(folder / "images/train/t.png");
  write_labelled(folder / "images/val/v.png");
  CHECK(pictures(opened(folder.path())) == ClassNames{"t.png"});
  CHECK(pictures(opened(folder.path(), Split::Test)) == ClassNames{"v.png"});
}

TEST_CASE("what a data.yaml may not say is refused with its file") {
  const TemporaryFolder folder;
  write_labelled(folder / "images/a.png");
  const std::string train = "train: images\n";
  struct Case {
    std::string text;
    const char* what;
  };
  for (const Case& each :
       {Case{"", "expected keys such as train, val and names, found nothing"},
        Case{"- train\n", "found a list"},
        Case{kNames, "the key train"},
        Case{"train:\n" + std::string(kNames), "the key train"},
        Case{train, "the key names"},
        Case{train + "nc: 2\n", "the key names"},
        Case{"train: [images, ./images/]\n" + std::string(kNames),
             "images/ is there a second time"},
        Case{"train: nowhere\n" + std::string(kNames), ":1: train: there is no folder and no list"},
        Case{"train: {a: b}\n" + std::string(kNames), "train: expected a path, found a map"},
        Case{"train: [[images]]\n" + std::string(kNames), "expected a path, found a list"},
        Case{"train: \"im\\0ages\"\n" + std::string(kNames), "control characters"},
        Case{train + "path: [a]\n" + kNames, "path: expected a path"},
        Case{train + "path: /no/such/place\n" + kNames, ":2: path: there is no folder /no/such"},
        Case{train + "names: cup\n", "names: expected a list of the classes"},
        Case{train + "names: []\n", "found an empty one"},
        Case{train + "names: 5\n", "found 5"},
        Case{train + "names: [cup, 5]\n", "class 1 is 5: expected a text, in quotes"},
        Case{train + "names: [cup, true]\n", "class 1 is true"},
        Case{train + "names: [cup, ~]\n", "class 1 is nothing"},
        Case{train + "names: [cup, [ball]]\n", "class 1 is a list"},
        Case{train + "names: [cup, ' ']\n", "class 1: empty"},
        Case{train + "names: [cup, \"a\\nb\"]\n", "class 1: expected one line"},
        Case{train + "names: {0: cup, 2: ball}\n", "there is a 2 and no 1"},
        Case{train + "names: {1: cup, 2: ball}\n", "there is a 1 and no 0"},
        Case{train + "names: {-1: cup, 0: ball}\n", "from 0, found -1"},
        Case{train + "names: {cup: 0, ball: 1}\n", "from 0, found cup"},
        Case{train + "names: {0: cup, 00: ball}\n", "class 0 is there a second time"},
        Case{train + "names: {0: cup, 0: ball}\n", "0 is given a second time"},
        Case{train + "nc: 3\n" + kNames, ":2: nc: expected the number of names, 2, found 3"},
        Case{train + "nc: 1000000000000\n" + kNames, "found 1000000000000"},
        Case{train + "nc: two\n" + kNames, "found two"},
        Case{train + "nc: [2]\n" + kNames, "found a list"},
        Case{train + "kpt_shape: 17\n" + kNames, "kpt_shape: expected [K, D]"},
        Case{train + "kpt_shape: [17, 4]\n" + kNames, "kpt_shape: expected [K, D]"},
        Case{train + "kpt_shape: [1000000000000, 3]\n" + kNames, "kpt_shape: expected [K, D]"}}) {
    CAPTURE(each.text);
    write_text(folder / "data.yaml", each.text);
    const std::string error = refused(folder.path());
    INFO(error);
    CHECK(has(error, "data.yaml"));
    CHECK(has(error, each.what));
  }
  write_text(folder / "data.yaml", train + "names: {0: '5', 1: nan, 2: yes, 3: !!str 7}\n");
  CHECK(opened(folder.path()).class_names() == ClassNames{"5", "nan", "yes", "7"});
}

TEST_CASE("layouts are recognised by their files") {
  using engine::DataLayout;
  const TemporaryFolder folder;
  const auto layout = [&](const char* name) {
    return engine::layout_of(folder / name, engine::TargetKind::Either);
  };
  write_one(folder / "yolo", "0 0.5 0.5 0.1 0.1\n");
  write_labelled(folder / "studio/images/a.png");
  write_text(folder / "studio/classes.txt", "cup\nball\n");
  write_labelled(folder / "folders/images/a.png");
  write_labelled(folder / "darknet/a.png");
  write_text(folder / "darknet/list.txt", "a.png\n");
  write_text(folder / "darknet/d.data", "classes=2\ntrain=list.txt\n");
  CHECK(layout("yolo") == DataLayout::DataYaml);
  CHECK(layout("yolo/data.yaml") == DataLayout::DataYaml);
  CHECK(engine::layout_name(layout("yolo")) == "data.yaml (Ultralytics)");
  CHECK(layout("studio") == DataLayout::ImagesAndLabels);
  CHECK(engine::layout_name(layout("studio")) == "images and labels (Label Studio)");
  CHECK(layout("folders") == DataLayout::ClassFolders);
  CHECK(engine::layout_name(layout("folders")) == "a folder per class");
  CHECK(layout("darknet/d.data") == DataLayout::DarknetBoxes);
  CHECK(has(input_error_of(
                [&] { (void)engine::layout_of(folder / "yolo", engine::TargetKind::Classes); }),
            "this data set has boxes"));
}

#endif
