#include "engine/moving/arrivals.h"

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Arrivals;
using engine::FileGroup;
using engine::MovedSample;

namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

TEST_CASE("what has arrived is known by its checksum, and by its size before that") {
  const tests::TemporaryFolder folder;
  const std::vector<MovedSample> samples = {{7, 3, 1, "rex.jpg"}, {9, 5, 0, "tom.jpg"}};
  const Arrivals arrivals(folder.path(), 2, samples, {"cat", "dog"});
  CHECK(arrivals.checksums_there() == std::vector<std::uint64_t>{0, 0});
  FileGroup group;
  arrivals.store(0, bytes("rex"), group);
  group.commit();
  CHECK(tests::bytes_of(folder / "from-2" / "dog" / "00000007-rex.jpg") == "rex");
  CHECK(arrivals.checksums_there() ==
        std::vector<std::uint64_t>{engine::checksum(bytes("rex")), 0});
  tests::put_bytes(folder / "from-2" / "dog" / "00000007-rex.jpg", "max");
  CHECK(arrivals.checksums_there()[0] == engine::checksum(bytes("max")));
  tests::put_bytes(folder / "from-2" / "dog" / "00000007-rex.jpg", "re");
  CHECK(arrivals.checksums_there()[0] == 0);
}

TEST_CASE("arrived picture files are a data set with the classes that they came with") {
  const tests::TemporaryFolder folder;
  const Arrivals arrivals(folder.path(), 0, {{7, 3, 1, "rex.jpg"}}, {"cat", "dog"});
  FileGroup group;
  arrivals.store(0, bytes("rex"), group);
  group.commit();
  engine::PictureFiles pictures;
  engine::PictureRecords records;
  arrivals.add_to(pictures, records);
  REQUIRE(pictures.paths.size() == 1);
  CHECK(pictures.paths[0] == (folder / "from-0" / "dog" / "00000007-rex.jpg").string());
  CHECK(pictures.labels == std::vector<int>{1});
  CHECK(records.pictures[0].bytes == 3);
}

TEST_CASE("arrived bytes are pictures with their classes") {
  const tests::TemporaryFolder folder;
  const Arrivals arrivals(folder.path(), 0, {{3, 3, 4, ""}, {8, 3, 2, ""}}, {});
  REQUIRE(arrivals.files().size() == 1);
  FileGroup group;
  arrivals.store(0,
                 bytes("\x04"
                       "ab"
                       "\x02"
                       "cd"),
                 group);
  group.commit();
  CHECK(arrivals.checksums_there() == std::vector<std::uint64_t>{engine::checksum(bytes("\x04"
                                                                                        "ab")),
                                                                 engine::checksum(bytes("\x02"
                                                                                        "cd"))});
  engine::BytePictures pictures;
  pictures.shape = {1, 1, 2};
  arrivals.add_to(pictures);
  CHECK(pictures.labels == std::vector<std::uint8_t>{4, 2});
  CHECK(pictures.pixels == std::vector<std::uint8_t>{'a', 'b', 'c', 'd'});
}

TEST_CASE("no name leads out of the folder") {
  CHECK(engine::harmless_name("rex.jpg") == "rex.jpg");
  CHECK(engine::harmless_name("..") == "_..");
  CHECK(engine::harmless_name("../../etc") == "_.._.._etc");
  CHECK(engine::harmless_name("") == "_");
  CHECK(engine::harmless_name("a\nb") == "a_b");
  CHECK(engine::harmless_name(std::string(300, 'x') + ".png").size() == 100);
}
