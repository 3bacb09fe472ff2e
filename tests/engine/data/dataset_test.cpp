#include "engine/data/dataset.h"

#include "tests/engine/data/samples.h"
#include "tests/support/open_dataset.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/named_pictures.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Split;
using tests::Bytes;
using tests::has;
using tests::input_error_of;
using tests::open_dataset;
using tests::random_bytes;
using tests::TemporaryFolder;
using tests::write_bytes;
using tests::write_png;
using tests::write_text;

namespace {

namespace fs = std::filesystem;

std::string opening(const fs::path& path, Split split = Split::Train) {
  return input_error_of([&] { (void)open_dataset(path, split, 3); });
}

void write_sample(const fs::path& path) {
  write_png(path, 2, 3, 3, random_bytes(18, 3));
}

// `names` under folder/pictures, and a .data file that lists them for training and testing.
fs::path write_darknet(const TemporaryFolder& folder,
                       const std::vector<std::string>& names,
                       const std::string& labels) {
  std::string list;
  for (const std::string& name : names) {
    write_sample(folder / "pictures" / name);
    list += "pictures/" + name + "\n";
  }
  write_text(folder / "some.list", list);
  write_text(folder / "labels.txt", labels);
  write_text(folder / "some.data",
             "# comment\nclasses = 3\ntrain= some.list\r\nvalid "
             "=some.list\n\nlabels=labels.txt\nbackup = nowhere\n");
  return folder / "some.data";
}

}  // namespace

TEST_CASE("PNG pixels arrive in their places, whatever the file's channels") {
  const TemporaryFolder folder;
  constexpr Index kRows = 5;
  constexpr Index kCols = 7;
  for (int channels = 1; channels <= 4; ++channels) {
    CAPTURE(channels);
    const Bytes pixels = random_bytes(kRows * kCols * channels, 40);
    write_png(folder / "a.png", kRows, kCols, channels, pixels);
    const engine::Picture colour = engine::open_pictures(folder / "a.png", 3).read(0);
    const engine::Picture grey = engine::open_pictures(folder / "a.png", 1).read(0);
    REQUIRE(colour.shape == partitioner::MapShape{3, kRows, kCols});
    REQUIRE(grey.shape == partitioner::MapShape{1, kRows, kCols});
    for (Index i = 0; i < kRows * kCols; ++i) {
      const std::uint8_t* pixel = &pixels[static_cast<std::size_t>(i * channels)];
      const bool coloured = channels >= 3;
      const double r = pixel[0];
      const double g = pixel[coloured ? 1 : 0];
      const double b = pixel[coloured ? 2 : 0];
      CHECK(colour.value(0, i / kCols, i % kCols) == static_cast<float>(r) / 255.0F);
      CHECK(colour.value(2, i / kCols, i % kCols) == static_cast<float>(b) / 255.0F);
      CHECK(grey.value(0, i / kCols, i % kCols) ==
            doctest::Approx((0.299 * r + 0.587 * g + 0.114 * b) / 255));
    }
  }
}

TEST_CASE("a JPEG of one colour has that colour") {
  const TemporaryFolder folder;
  Bytes pixels;
  for (int i = 0; i < 9 * 17; ++i) {
    pixels.insert(pixels.end(), {200, 100, 50});
  }
  tests::write_jpeg(folder / "a.JPG", 9, 17, 3, pixels);
  const engine::Picture picture = engine::open_pictures(folder / "a.JPG", 3).read(0);
  CHECK(picture.shape == partitioner::MapShape{3, 9, 17});
  CHECK(picture.value(0, 4, 2) == doctest::Approx(200.0 / 255).epsilon(0.02));
  CHECK(picture.value(2, 0, 5) == doctest::Approx(50.0 / 255).epsilon(0.05));
}

TEST_CASE("a damaged picture is named together with what is wrong") {
  const TemporaryFolder folder;
  const auto reading = [&](const fs::path& path) {
    std::string message = input_error_of([&] { (void)engine::open_pictures(path, 3).read(0); });
    CHECK(has(message, path.string() + ":"));
    return message;
  };
  const Bytes pixels = random_bytes(6000, 8);
  const fs::path png = folder / "a.png";
  const fs::path jpeg = folder / "a.jpg";
  write_png(png, 40, 50, 3, pixels);
  tests::write_jpeg(jpeg, 40, 50, 3, pixels);
  const Bytes whole_png = tests::read_back(png);
  const Bytes whole_jpeg = tests::read_back(jpeg);

  SUBCASE("a PNG cut off anywhere") {
    for (std::size_t kept = 0; kept < whole_png.size(); kept += 101) {
      write_bytes(png,
                  Bytes(whole_png.begin(), whole_png.begin() + static_cast<std::ptrdiff_t>(kept)));
      CHECK(has(reading(png), kept < 8 ? "not a JPEG, PNG" : "cut off"));
    }
  }
  SUBCASE("a JPEG cut off anywhere") {
    for (std::size_t kept = 3; kept < whole_jpeg.size(); kept += 101) {
      write_bytes(
          jpeg, Bytes(whole_jpeg.begin(), whole_jpeg.begin() + static_cast<std::ptrdiff_t>(kept)));
      CHECK(has(reading(jpeg), "cut off"));
    }
  }
  SUBCASE("a PNG that says it is enormous") {
    Bytes lying = whole_png;
    lying[16 + 2] = 0x20;  // width, of four bytes
    lying[20 + 2] = 0x20;  // height
    tests::mend_png_checksum(lying, 8);
    write_bytes(png, lying);
    CHECK(has(reading(png), "8242 x 8232 pixels"));
  }
  SUBCASE("something else") {
    write_text(png, "a picture, or so its name says");
    CHECK(has(reading(png), "not a JPEG, PNG"));
  }
  SUBCASE("missing") {
    CHECK(has(reading(folder / "none.png"), "no such file"));
  }
}

TEST_CASE("the class of a listed picture is the longest label in its path") {
  const TemporaryFolder folder;
  const fs::path data_file =
      write_darknet(folder, {"1_cat.png", "cat/dogfish.png", "x-dog.png"}, "cat\ndog\ndogfish\n");
  const engine::Dataset data = open_dataset(data_file, Split::Train, 3);
  REQUIRE(data.size() == 3);
  CHECK(data.label(0) == 0);
  CHECK(data.label(1) == 2);
  CHECK(data.label(2) == 1);
  CHECK(data.class_names()[2] == "dogfish");
  CHECK(data.read(1).shape == partitioner::MapShape{3, 2, 3});
  CHECK(data.name(2) == (folder / "pictures" / "x-dog.png").string());
  CHECK(open_dataset(data_file, Split::Test, 1).read(0).shape == partitioner::MapShape{1, 2, 3});
}

TEST_CASE("names show what labels find, and only as many as there are classes count") {
  const TemporaryFolder folder;
  const fs::path data_file = write_darknet(folder, {"n02.png", "n01.png"}, "n01\nn02\nn03\nn04\n");
  write_text(folder / "names.txt", "tench\ngoldfish\nshark\nray\n");
  write_text(data_file, "classes=2\ntrain=some.list\nlabels=labels.txt\nnames=names.txt\n");
  const engine::Dataset data = open_dataset(data_file, Split::Train, 3);
  CHECK(data.classes() == 2);
  CHECK(data.class_names()[static_cast<std::size_t>(data.label(0))] == "goldfish");
}

TEST_CASE("a .data file that cannot be used is refused with file and line") {
  const TemporaryFolder folder;
  const fs::path data_file = write_darknet(folder, {"cat.png", "dog.png"}, "cat\ndog\nbird\n");
  const std::string at = data_file.string() + ":";
  SUBCASE("a path without a label") {
    write_text(folder / "some.list", "pictures/cat.png\n\npictures/fish.png\n");
    CHECK(has(opening(data_file), (folder / "some.list").string() + ":3: pictures/fish.png"));
  }
  SUBCASE("a path with two labels of the same length") {
    write_text(folder / "some.list", "dog/cat.png\n");
    CHECK(has(opening(data_file), (folder / "some.list").string() + ":1: dog/cat.png"));
  }
  SUBCASE("two classes of one label") {
    write_text(folder / "labels.txt", "cat\ndog\ncat\n");
    CHECK(has(opening(data_file), (folder / "labels.txt").string() + ": \"cat\""));
  }
  SUBCASE("too few labels") {
    write_text(folder / "labels.txt", "cat\ndog\n");
    CHECK(has(opening(data_file), (folder / "labels.txt").string() + ": 2 names"));
  }
  SUBCASE("an empty list") {
    write_text(folder / "some.list", "\n \n");
    CHECK(has(opening(data_file), (folder / "some.list").string() + ":"));
  }
  SUBCASE("missing keys, files and numbers") {
    write_text(data_file, "classes=3\nlabels=labels.txt\n");
    CHECK(has(opening(data_file), at + " the key train"));
    CHECK(has(opening(data_file, Split::Test), at + " the key valid"));
    write_text(data_file, "classes=3\nlabels=labels.txt\ntrain=none.list\n");
    CHECK(has(opening(data_file), at + "3: train = none.list"));
    write_text(data_file, "classes=three\nlabels=labels.txt\ntrain=some.list\n");
    CHECK(has(opening(data_file), at + "1: classes = three"));
    write_text(data_file, "classes=3\ntrain\n");
    CHECK(has(opening(data_file), at + "2: this line"));
    write_text(data_file, "classes=3\ntrain=some.list\n");
    CHECK(has(opening(data_file), "labels"));
  }
  SUBCASE("a picture that is not there, when it is read") {
    fs::remove(folder / "pictures" / "dog.png");
    const engine::Dataset data = open_dataset(data_file, Split::Train, 3);
    CHECK(has(input_error_of([&] { (void)data.read(1); }),
              (folder / "pictures" / "dog.png").string() + ":"));
  }
}

TEST_CASE("class folders give sorted classes and pictures, for training and for testing") {
  const TemporaryFolder folder;
  for (const char* name : {"train/b/2.png",
                           "train/b/1.PNG",
                           "train/a/9.jpeg",
                           "test/b/0.png",
                           "train/b/notes.txt",
                           "train/.hidden/1.png"}) {
    write_sample(folder / name);
  }
  const engine::Dataset train = open_dataset(folder.path(), Split::Train, 3);
  REQUIRE(train.size() == 3);
  CHECK(train.class_names() == std::vector<std::string>{"a", "b"});
  CHECK(train.label(0) == 0);
  CHECK(train.name(1) == (folder / "train" / "b" / "1.PNG").string());
  CHECK(train.read(1).shape.cols == 3);
  const engine::Dataset test = open_dataset(folder.path(), Split::Test, 3);
  REQUIRE(test.size() == 1);
  CHECK(test.label(0) == 1);
  CHECK(test.classes() == 2);
}

TEST_CASE(
    "without a folder for testing every tenth picture is for testing and no picture is for both") {
  const TemporaryFolder folder;
  for (int i = 0; i < 25; ++i) {
    write_sample(folder / (i < 12 ? "x" : "y") / (std::to_string(100 + i) + ".png"));
  }
  const engine::Dataset train = open_dataset(folder.path(), Split::Train, 3);
  const engine::Dataset test = open_dataset(folder.path(), Split::Test, 3);
  CHECK(train.size() == 23);
  REQUIRE(test.size() == 2);
  CHECK(test.name(0) == (folder / "x" / "109.png").string());
  CHECK(test.label(1) == 1);
  for (Index i = 0; i < train.size(); ++i) {
    CHECK(train.name(i) != test.name(0));
    CHECK(train.name(i) != test.name(1));
  }
}

TEST_CASE("without a folder for testing each class is tested, but for one of a single picture") {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) {
    write_sample(folder / "many" / (std::to_string(100 + i) + ".png"));
  }
  for (const char* name : {"few/1.png", "few/2.png", "few/3.png", "one/1.png"}) {
    write_sample(folder / name);
  }
  const engine::Dataset test = open_dataset(folder.path(), Split::Test, 3);
  REQUIRE(test.size() == 3);  // in the order of classes: few, many, one
  CHECK(test.name(0) == (folder / "few" / "3.png").string());
  CHECK(test.label(1) == 1);
  CHECK(test.label(2) == 1);
  CHECK(open_dataset(folder.path(), Split::Train, 3).size() == 21);
}

TEST_CASE("folders of a system and of training runs are no classes, and are named") {
  const TemporaryFolder folder;
  write_sample(folder / "train/cup/1.png");
  write_sample(folder / "train/@eaDir/1.png");
  fs::create_directories(folder / "train/lost+found");
  write_text(folder / "train/mine/run.json", "{}");
  write_text(folder / "train/mine/metrics.jsonl", "");
  write_sample(folder / "test/cup/2.png");
  const engine::Dataset train = open_dataset(folder.path(), Split::Train, 3);
  CHECK(train.class_names() == std::vector<std::string>{"cup"});
  CHECK(train.size() == 1);
  std::string named;
  for (const engine::DataProblem& problem : train.problems()) {
    CHECK(problem.fault == engine::DataFault::LeftOut);
    named += problem.where + " ";
  }
  for (const char* name : {"@eaDir", "lost+found", "mine"}) {
    CHECK(has(named, name));
  }
}

TEST_CASE("a class is the same however its accents are written") {
  const TemporaryFolder folder;
  write_sample(folder / "train/caf\xc3\xa9/1.png");
  write_sample(folder / "train/tea/1.png");
  write_sample(folder / "test/cafe\xcc\x81/2.png");  // as a Mac writes it
  const engine::Dataset test = open_dataset(folder.path(), Split::Test, 3);
  CHECK(test.problems().empty());
  REQUIRE(test.size() == 1);
  CHECK(test.label(0) == 0);
  CHECK(test.class_names() == std::vector<std::string>{"caf\xc3\xa9", "tea"});
}

TEST_CASE("a key of a .data file that is given twice is refused, with both lines") {
  const TemporaryFolder folder;
  write_text(folder / "some.data", "classes = 2\ntrain = a\nclasses = 3\n");
  CHECK(has(opening(folder / "some.data"),
            "some.data:3: classes is given a second time, after line 1"));
}

TEST_CASE("the folder for testing goes by any of its names, in any case") {
  for (const char* name : {"test", "Testing", "val", "VALID", "validation"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    write_sample(folder / "Train/a/1.png");
    write_sample(folder / "Train/b/1.png");
    write_sample(folder / name / "b/9.png");
    CHECK(open_dataset(folder.path(), Split::Train, 3).size() == 2);
    const engine::Dataset test = open_dataset(folder.path(), Split::Test, 3);
    REQUIRE(test.size() == 1);
    CHECK(test.label(0) == 1);
    CHECK(test.problems().empty());
  }
}

TEST_CASE("of several folders for testing one is used and it is said which") {
  const TemporaryFolder folder;
  write_sample(folder / "train/a/1.png");
  write_sample(folder / "validation/a/2.png");
  write_sample(folder / "test/a/3.png");
  const engine::Dataset test = open_dataset(folder.path(), Split::Test, 3);
  CHECK(test.name(0) == (folder / "test/a/3.png").string());
  REQUIRE(test.problems().size() == 1);
  CHECK(test.problems()[0].what == "only train and test are used, not validation");
  write_sample(folder / "training/a/1.png");
  CHECK(has(opening(folder.path()), "train and training are both folders for training"));
}

TEST_CASE("a class may be called as a half is") {
  const TemporaryFolder folder;
  for (const char* name : {"bus/1.png", "train/1.png", "car/1.png"}) {
    write_sample(folder / name);
  }
  CHECK(open_dataset(folder.path(), Split::Train, 3).class_names() ==
        std::vector<std::string>{"bus", "car", "train"});
}

TEST_CASE("pictures in deeper folders count for their class, and what is left out is counted") {
  const TemporaryFolder folder;
  for (const char* name : {"train/a/1.png",
                           "train/a/day2/1.png",
                           "train/a/day2/late/2.png",
                           "train/a/.cache/3.png",
                           "train/b/1.png",
                           "train/stray.png",
                           "test/a/9.png"}) {
    write_sample(folder / name);
  }
  for (const char* name : {"train/a/1.HEIC", "train/b/2.heic", "train/b/day/notes"}) {
    write_text(folder / name, "something");
  }
  const engine::Dataset train = open_dataset(folder.path(), Split::Train, 3);
  REQUIRE(train.size() == 4);
  CHECK(train.name(1) == (folder / "train/a/day2/1.png").string());
  CHECK(train.label(2) == 0);
  CHECK(train.files()->left_out == engine::LeftOutFiles{{".heic", 2}, {"", 1}});
  CHECK(engine::describe(train.files()->left_out) == "1 file without an ending, 2 .heic files");
  REQUIRE(train.problems().size() == 2);
  CHECK(has(train.problems()[0].what, "stray.png"));
  CHECK(has(train.problems()[1].what, "2 pictures in deeper folders (day2 and 1 more)"));
}

TEST_CASE("all that is wrong with a list or with folders is found at once") {
  const TemporaryFolder folder;
  const fs::path data_file = write_darknet(folder, {"cat.png", "dog.png"}, "cat\ndog\nbird\n");
  write_text(folder / "some.list", "pictures/fish.png\npictures/cat.png\n\ncat_dog.png\nsecret\n");
  const engine::Dataset listed = engine::list_dataset(data_file, Split::Train, 3);
  CHECK(listed.size() == 1);
  REQUIRE(listed.problems().size() == 3);
  CHECK(listed.problems()[1].where == (folder / "some.list").string() + ":4");
  CHECK(has(listed.problems()[1].what, "\"cat\" and \"dog\""));
  CHECK(!has(listed.problems()[2].what, "secret"));

  fs::create_directories(folder / "sorted/train/empty");
  write_sample(folder / "sorted/train/a/1.png");
  fs::create_symlink("nowhere.png", folder / "sorted/train/a/2.png");
  const engine::Dataset sorted = engine::list_dataset(folder / "sorted", Split::Train, 3);
  REQUIRE(sorted.problems().size() == 2);
  CHECK(sorted.problems()[0].fault == engine::DataFault::Missing);
  CHECK(sorted.problems()[1].fault == engine::DataFault::EmptyClass);
}

TEST_CASE("class folders that cannot be used are refused with their path") {
  const TemporaryFolder folder;
  SUBCASE("a class without pictures") {
    write_sample(folder / "train/a/1.png");
    fs::create_directories(folder / "train/b");
    CHECK(has(opening(folder.path()), (folder / "train/b").string() + ":"));
  }
  SUBCASE("a class that only testing knows") {
    write_sample(folder / "train/a/1.png");
    write_sample(folder / "val/c/1.png");
    CHECK(has(opening(folder.path(), Split::Test), (folder / "val/c").string() + ":"));
  }
  SUBCASE("nothing to train with") {
    write_sample(folder / "test/a/1.png");
    CHECK(has(opening(folder.path()), folder.path().string() + ":"));
  }
  SUBCASE("a link to a picture that is not there") {
    write_sample(folder / "train/a/1.png");
    write_sample(folder / "test/a/9.png");
    fs::create_symlink(folder / "train/a/1.png", folder / "train/a/2.png");
    CHECK(open_dataset(folder.path(), Split::Train, 3).size() == 2);
    fs::create_symlink(folder / "train/a/0.png", folder / "train/a/3.png");
    CHECK(has(opening(folder.path()), (folder / "train/a/3.png").string() + ": this link"));
    fs::rename(folder / "train/a/3.png", folder / "train/a/.3.png");  // hidden
    CHECK(open_dataset(folder.path(), Split::Train, 3).size() == 2);
  }
  SUBCASE("too few to test with") {
    write_sample(folder / "a/1.png");
    CHECK(has(opening(folder.path(), Split::Test),
              folder.path().string() + ": no picture for testing"));
  }
}

TEST_CASE("pictures to classify come from a file, a list or a folder") {
  const TemporaryFolder folder;
  write_sample(folder / "p/b.png");
  write_sample(folder / "p/a.png");
  write_text(folder / "list", "p/b.png\np/a.png\n");
  CHECK(engine::open_pictures(folder / "p", 3).name(0) == (folder / "p/a.png").string());
  CHECK(engine::open_pictures(folder / "list", 3).name(0) == (folder / "p/b.png").string());
  CHECK(engine::open_pictures(folder / "list", 3).read(1).shape.rows == 2);
  CHECK(engine::open_pictures(folder / "p/b.png", 1).size() == 1);
  CHECK(has(input_error_of([&] { (void)engine::open_pictures(folder / "none", 3); }),
            "none: no such file"));
  fs::create_directories(folder / "empty/deeper");
  CHECK(has(input_error_of([&] { (void)engine::open_pictures(folder / "empty", 3); }),
            (folder / "empty").string() + ": there are no pictures"));
}

TEST_CASE("of a named folder the pictures at all levels are taken, in the order of their paths") {
  const TemporaryFolder folder;
  const std::vector<std::string> order{"a/1.png", "a/2.png", "a/x/y/3.png", "b.png", "b/1.png"};
  for (const std::string& name : {order[3], order[1], order[4], order[2], order[0]}) {
    write_sample(folder / "set" / name);
  }
  write_text(folder / "set/a/notes.txt", "no picture");
  const engine::NamedPictures named = engine::open_named_pictures({(folder / "set").string()}, 3);
  REQUIRE(named.sets.size() == 1);
  REQUIRE(named.size() == std::ssize(order));
  for (Index i = 0; i < named.size(); ++i) {
    CHECK(named.sets[0].name(i) == (folder / "set" / order[static_cast<std::size_t>(i)]).string());
  }
  CHECK(named.problems.empty());
  CHECK(named.left_out.empty());
}

TEST_CASE("a named folder says what of it is not a picture, and what is left out") {
  const TemporaryFolder folder;
  write_sample(folder / "set/1.png");
  SUBCASE("links to folders, also to the folder itself, are not followed") {
    fs::create_directory_symlink(folder / "set", folder / "set/again");
    const engine::NamedPictures named = engine::open_named_pictures({(folder / "set").string()}, 3);
    CHECK(named.size() == 1);
    REQUIRE(named.left_out.size() == 1);
    CHECK(has(named.left_out[0], (folder / "set/again").string() + ": a link to a folder"));
  }
  SUBCASE("folders beyond a depth") {
    std::string deep = "set";
    for (int level = 1; level <= 33; ++level) {
      deep += "/d";
      write_sample(folder / deep / "2.png");
    }
    const engine::NamedPictures named = engine::open_named_pictures({(folder / "set").string()}, 3);
    CHECK(named.size() == 1 + 32);
    REQUIRE(named.left_out.size() == 1);
    CHECK(has(named.left_out[0], (folder / deep).string() + ": this folder is nested too deeply"));
  }
  SUBCASE("pictures of formats that are not read") {
    write_text(folder / "set/in/2.heic", "no picture");
    const engine::NamedPictures named = engine::open_named_pictures({(folder / "set").string()}, 3);
    CHECK(named.problems.empty());
    REQUIRE(named.left_out.size() == 1);
    CHECK(has(named.left_out[0], (folder / "set").string() + ": 1 .heic file left out"));
  }
  SUBCASE("links to nothing count among what cannot be read") {
    fs::create_directory(folder / "links");
    fs::create_symlink("nowhere.png", folder / "links/2.png");
    const engine::NamedPictures named =
        engine::open_named_pictures({(folder / "links").string(), (folder / "set").string()}, 3);
    CHECK(named.size() == 1);
    REQUIRE(named.problems.size() == 1);
    CHECK(has(named.problems[0], (folder / "links/2.png").string() + ": this link"));
  }
  SUBCASE("more pictures than are taken of one folder") {
    write_sample(folder / "set/in/2.png");
    CHECK(engine::list_folder_pictures(folder / "set", 2).paths.size() == 2);
    CHECK(has(input_error_of([&] { (void)engine::list_folder_pictures(folder / "set", 1); }),
              (folder / "set").string() + ": more than 1 pictures"));
  }
}
