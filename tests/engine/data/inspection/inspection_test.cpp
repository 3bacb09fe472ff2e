#include <fstream>

#include "tests/engine/data/samples.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/base/in_threads.h"
#include "engine/data/inspection/data_summary.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::DataFault;
using engine::Split;
using tests::has;
using tests::input_error_of;
using tests::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

void write_picture(const fs::path& path, std::uint64_t seed) {
  tests::write_png(path, 2, 3, 3, tests::random_bytes(18, seed));
}

engine::InspectedData inspected(const fs::path& path) {
  engine::InspectedData data;
  data.path = path.string();
  data.training.emplace(engine::list_dataset(path, Split::Train, 3));
  data.testing.emplace(engine::list_dataset(path, Split::Test, 3));
  inspect(data, reading_rules_for(data), {.decode = true});
  return data;
}

Index count(const std::vector<engine::DataProblem>& problems, DataFault fault) {
  return std::count_if(
      problems.begin(), problems.end(), [&](const auto& each) { return each.fault == fault; });
}

}  // namespace

TEST_CASE("missing, empty, broken and unreadable pictures are all found, each at its place") {
  const TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 200; ++i) {
    const std::string name = std::to_string(i) + "_a.png";
    write_picture(folder / name, static_cast<std::uint64_t>(i));
    list += name + "\n";
  }
  list += "none_a.png\n";
  fs::resize_file(folder / "20_a.png", 0);
  fs::resize_file(folder / "70_a.png", 40);
  fs::remove(folder / "150_a.png");
  fs::create_directory(folder / "150_a.png");
  tests::write_text(folder / "d.list", list);
  tests::write_text(folder / "d.labels", "a\n");
  tests::write_text(folder / "d.data", "train=d.list\nvalid=d.list\nlabels=d.labels\n");
  engine::InspectedData data = inspected(folder / "d.data");
  const auto& bad = data.training->bad;
  REQUIRE(bad.size() == 4);
  CHECK(bad[0].problem.fault == DataFault::Broken);
  CHECK(bad[0].problem.where == (folder / "d.list").string() + ":21");
  CHECK(bad[1].item == 70);
  CHECK(bad[2].problem.fault == DataFault::Unreadable);
  CHECK(bad[3].problem.fault == DataFault::Missing);
  CHECK(bad[3].problem.where == (folder / "d.list").string() + ":201");
  CHECK(count(problems_of(data), DataFault::Missing) == 1);  // both halves have this list
  data.training->drop({20, 70, 150, 200});
  CHECK(data.training->dataset.size() == 197);
  CHECK(data.training->dataset.place(20) == (folder / "d.list").string() + ":22");
}

TEST_CASE("the same picture twice, and one for training and testing, are found by content") {
  const TemporaryFolder folder;
  for (int i = 0; i < 5; ++i) {
    write_picture(folder / "train/a" / (std::to_string(i) + ".png"), i == 4 ? 2 : i);
    write_picture(folder / "train/b" / (std::to_string(i) + ".png"), 100 + i);
    write_picture(folder / "test/b" / (std::to_string(i) + ".png"), i == 0 ? 103 : 200 + i);
  }
  const std::vector<engine::DataProblem> problems = problems_of(inspected(folder.path()));
  REQUIRE(count(problems, DataFault::Duplicate) == 1);
  CHECK(problems[0].where == (folder / "train/a/4.png").string());
  CHECK(has(problems[0].what, (folder / "train/a/2.png").string()));
  CHECK(count(problems, DataFault::InBothHalves) == 1);
  CHECK(count(problems, DataFault::Unbalanced) == 1);  // none of a to test with
  CHECK(count_of(problems) == "3 problems: 1 duplicate, 1 in both halves, 1 unbalanced");
}

TEST_CASE("a picture that was cut off is found at its end, and what follows a picture is none") {
  const TemporaryFolder folder;
  for (int i = 0; i < 4; ++i) {
    tests::write_jpeg(folder / "train/a" / (std::to_string(i) + ".jpg"),
                      64,
                      64,
                      3,
                      tests::random_bytes(12288, i));
  }
  write_picture(folder / "train/a/4.png", 4);
  write_picture(folder / "test/a/5.png", 5);
  const auto append = [&](const char* name) {
    std::ofstream(folder / name, std::ios::app) << std::string(5000, 'x');
  };
  append("train/a/1.jpg");  // as some cameras do
  fs::resize_file(folder / "train/a/2.jpg", fs::file_size(folder / "train/a/2.jpg") - 2);
  fs::resize_file(folder / "train/a/3.jpg", fs::file_size(folder / "train/a/3.jpg") / 2);
  append("train/a/3.jpg");
  fs::resize_file(folder / "train/a/4.png", fs::file_size(folder / "train/a/4.png") - 12);
  const engine::Dataset pictures = engine::list_dataset(folder.path(), Split::Train, 3);
  const engine::PictureFiles& files = *pictures.files();
  engine::PictureRecords records = record_sizes(files);
  record_contents(files, reading_rules_for(records), records);
  const auto bad = bad_pictures(files, records, {}, decoding_of_each(files, {}));
  REQUIRE(bad.size() == 3);
  CHECK(bad[0].item == 2);
  CHECK(has(bad[0].problem.what, "cut off"));
  CHECK(bad[1].item == 3);
  CHECK(bad[2].item == 4);
}

TEST_CASE("it is said where very few pictures are there to test with") {
  const TemporaryFolder folder;
  for (int i = 0; i < 60; ++i) {
    write_picture(folder / "train/a" / (std::to_string(i) + ".png"), i);
  }
  write_picture(folder / "test/a/0.png", 100);
  CHECK(has(few_tested(inspected(folder.path())).value_or(""),
            "1 picture to test with beside 60 to train on"));
  for (int i = 1; i < 10; ++i) {
    write_picture(folder / "test/a" / (std::to_string(i) + ".png"), 100 + i);
  }
  CHECK(!few_tested(inspected(folder.path())));
}

TEST_CASE("a data set is summed up in a line") {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) {
    write_picture(folder / (i < 14 ? "tent" : "ball") / (std::to_string(i) + ".png"), i);
  }
  tests::write_text(folder / "ball/1.heic", "");
  CHECK(summary_of(inspected(folder.path())) ==
        "20 pictures, 2 classes (ball, tent), 2 for testing; 1 .heic file left out");
}

TEST_CASE("a picture that is changed or removed after it was recorded is not read") {
  const TemporaryFolder folder;
  write_picture(folder / "train/a/1.png", 1);
  write_picture(folder / "train/a/2.png", 2);
  write_picture(folder / "test/a/1.png", 3);
  engine::InspectedData data = inspected(folder.path());
  engine::Dataset& pictures = data.training->dataset;
  pictures.expect_files(data.training->records);
  const auto reading = [&] { return input_error_of([&] { (void)pictures.read(1); }); };
  const auto later = fs::file_time_type::clock::now() + std::chrono::hours(1);
  fs::last_write_time(folder / "train/a/2.png", later);  // the same picture
  CHECK(pictures.read(1).shape.rows == 2);
  write_picture(folder / "train/a/2.png", 5);
  fs::last_write_time(folder / "train/a/2.png", later);
  CHECK(has(reading(), (folder / "train/a/2.png").string() + ": this picture was changed"));
  fs::remove(folder / "train/a/2.png");
  CHECK(has(reading(), "removed"));
  CHECK(pictures.read(0).shape.rows == 2);
}

TEST_CASE("no more threads decode pictures than memory allows, and one in any case") {
  constexpr Index kPicture = Index{30} << 20;
  const engine::Look unlimited{.decode = true};
  const auto threads = [](Index memory_bytes, Index picture_bytes) {
    return engine::decoding_threads({.decode = true, .memory_bytes = memory_bytes}, picture_bytes);
  };
  CHECK(engine::decoding_threads(unlimited, kPicture) == engine::kMostWorkingThreads);
  CHECK(threads(3 * kPicture - 1, kPicture) == 2);
  CHECK(threads(kPicture, kPicture) == 1);
  CHECK(threads(0, kPicture) == 1);
  CHECK(threads(kPicture, 0) == engine::kMostWorkingThreads);
}

TEST_CASE("a picture whose header and content have been read is not opened again") {
  const TemporaryFolder folder;
  for (const char* name : {"train/a/1.png", "train/a/2.png", "train/a/3.png"}) {
    write_picture(folder / name, 1);
  }
  fs::resize_file(folder / "train/a/3.png", 40);  // no whole header
  const engine::Dataset pictures = engine::list_dataset(folder.path(), Split::Train, 3);
  const engine::PictureFiles& files = *pictures.files();
  engine::PictureRecords records = record_sizes(files);
  const std::vector<engine::DecodingBytes> headers = decoding_of_each(files, {});
  record_contents(files, reading_rules_for(records), records);
  REQUIRE(bad_pictures(files, records, {}).size() ==
          bad_pictures(files, records, {}, headers).size());
  fs::resize_file(folder / "train/a/1.png", 40);
  const auto seen = bad_pictures(files, records, {}, headers);
  const auto opened = bad_pictures(files, records, {});
  CHECK(std::ssize(opened) == std::ssize(seen) + 1);
  CHECK(opened.front().item == 0);
  CHECK(bad_pictures(files, records, {.decode = true}, headers).front().item == 0);
}
