#include "engine/moving/moved_sample.h"

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/moving/move_lists.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Dataset;
using engine::MovedFile;
using engine::MovedSample;

namespace {

Dataset held(const std::vector<std::uint8_t>& labels) {
  engine::BytePictures pictures;
  pictures.shape = {1, 1, 3};
  pictures.labels = labels;
  for (std::size_t i = 0; i < 3 * labels.size(); ++i) {
    pictures.pixels.push_back(static_cast<std::uint8_t>(i));
  }
  pictures.class_names = {"cat", "dog", "owl"};
  return {std::move(pictures), "made", 1};
}

}  // namespace

TEST_CASE("samples come out of a message as they went in") {
  const std::vector<MovedSample> samples = {
      {3, 400, 1, "a.png"}, {70000000000, 1, 0, ""}, {4, 0, 2, "with\nbreak"}};
  CHECK(engine::unpacked(engine::packed(samples)) == samples);
  CHECK(engine::unpacked({}).empty());
}

TEST_CASE("a picture held as bytes is its class and its pixels") {
  const Dataset dataset = held({2, 1});
  const MovedSample sample = engine::moved_sample(dataset, 1);
  CHECK(sample == MovedSample{1, 4, 1, ""});
  std::vector<std::byte> bytes(4);
  engine::read_sample(dataset, sample, bytes);
  CHECK(bytes == std::vector<std::byte>{std::byte{1}, std::byte{3}, std::byte{4}, std::byte{5}});
}

TEST_CASE("a picture file is its bytes, and not what has another size by now") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "rex.jpg", "picture");
  engine::PictureFiles files;
  files.base = folder.path();
  files.paths.add("rex.jpg");
  files.labels = {0};
  files.class_names = {"dog"};
  const Dataset dataset(std::move(files), folder.path(), 3);
  const MovedSample sample = engine::moved_sample(dataset, 0);
  CHECK(sample == MovedSample{0, 7, 0, "rex.jpg"});
  std::vector<std::byte> bytes(7);
  engine::read_sample(dataset, sample, bytes);
  CHECK(engine::checksum(bytes) == engine::checksum(std::as_bytes(std::span("picture", 7))));
  tests::put_bytes(folder / "rex.jpg", "longer picture");
  CHECK(tests::has(tests::input_error_of([&] { engine::read_sample(dataset, sample, bytes); }),
                   "changed while samples were moved"));
}

TEST_CASE("each picture file is a file, and many pictures held as bytes are one") {
  CHECK(engine::moved_files({{0, 10, 0, "a"}, {1, 20, 0, "b"}}) ==
        std::vector<MovedFile>{{0, 1, 10}, {1, 2, 20}});
  const std::vector<MovedSample> small(600, {0, 785, 0, ""});
  const std::vector<MovedFile> files = engine::moved_files(small);
  REQUIRE(files.size() == 2);
  CHECK(files[0].end == files[1].begin);
  CHECK(files[1].end == 600);
  CHECK(files[0].bytes == static_cast<Index>(files[0].end) * 785);
}

TEST_CASE("items to send are those that a map counts, of all or of a class") {
  const Dataset dataset = held({0, 1, 0, 1, 0, 2});
  partitioner::DataMap map;
  map.before = {6, 0, 0};
  map.moves = {{0, 1, 4, 5}, {0, 2, 5, 6}};
  CHECK(engine::items_to_send(map, dataset, 0, "map") ==
        std::map<int, std::vector<Index>>{{1, {4}}, {2, {5}}});
  CHECK(engine::items_to_send(map, dataset, 1, "map").empty());
  CHECK(engine::items_to_receive(map, 2) == std::map<int, Index>{{0, 1}});
  map.moves = {{0, 1, 1, 3, "cat"}, {0, 1, 0, 1, "dog"}, {0, 2, 1, 2, "dog"}};
  CHECK(engine::items_to_send(map, dataset, 0, "map") ==
        std::map<int, std::vector<Index>>{{1, {1, 2, 4}}, {2, {3}}});
  CHECK(engine::items_to_receive(map, 1) == std::map<int, Index>{{0, 3}});
}

TEST_CASE("a map that wants more of a class than there is, or an unknown one, is refused") {
  const Dataset dataset = held({0, 1});
  partitioner::DataMap map;
  map.before = {2, 0};
  map.moves = {{0, 1, 0, 2, "cat"}};
  CHECK(tests::input_error_of([&] { (void)engine::items_to_send(map, dataset, 0, "map"); }) ==
        "map: samples 0 to 1 of class cat move from device 0, whose data set has 1 of it");
  map.moves = {{0, 1, 0, 1, "cow"}};
  CHECK(tests::input_error_of([&] { (void)engine::items_to_send(map, dataset, 0, "map"); }) ==
        "map: there is no class cow");
}
