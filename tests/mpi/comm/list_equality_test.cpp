#include "engine/comm/list_equality.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/comm/agreement.h"
#include "engine/data/dataset.h"
#include "engine/train/verifying/picture_equality.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using List = std::vector<std::string>;

List numbered(Index count) {
  List list;
  for (Index i = 0; i < count; ++i) {
    list.push_back("entry " + std::to_string(i));
  }
  return list;
}

// Where rank `other` has `its` list and all others have `common`.
std::optional<engine::ListDifference> difference(const List& common, const List& its, int other) {
  const Communicator world = Communicator::world();
  const List& mine = world.rank() == other ? its : common;
  return list_difference(
      std::ssize(mine), [&](Index i) { return mine[static_cast<std::size_t>(i)]; }, world);
}

TEST_CASE("lists are compared to their ends, whatever their lengths") {
  const int ranks = Communicator::world().size();
  for (const Index count : {0, 1, 255, 256, 257, 1000}) {
    const List list = numbered(count);
    CHECK(!difference(list, list, 0));
    for (const Index place : {Index{0}, count / 2, count - 1}) {
      if (count == 0 || ranks == 1) {
        continue;
      }
      List other = list;
      other[static_cast<std::size_t>(place)] = "another";
      const auto found = difference(list, other, ranks - 1);
      REQUIRE(found);
      CHECK(found->rank == ranks - 1);
      CHECK(found->place == place);
      CHECK(found->entries.front() == "another");
      CHECK(found->first_entries.front() == list[static_cast<std::size_t>(place)]);
    }
  }
}

TEST_CASE("an entry that one rank lacks or has besides is found at its place") {
  const int ranks = Communicator::world().size();
  if (ranks == 1) {
    return;
  }
  for (const int place : {0, 100, 255, 256, 511, 599}) {
    const List list = numbered(600);
    List shorter = list;
    shorter.erase(shorter.begin() + place);
    const auto lacks = difference(list, shorter, 1);
    REQUIRE(lacks);
    CHECK(lacks->place == place);
    CHECK(lacks->first_entries.front() == list[static_cast<std::size_t>(place)]);
    CHECK(lacks->entries.empty() == (place == 599));
    const auto first_lacks = difference(list, shorter, 0);
    REQUIRE(first_lacks);
    CHECK(first_lacks->rank == 1);
    CHECK(first_lacks->entries.front() == list[static_cast<std::size_t>(place)]);
  }
}

// What all ranks are told where the last rank has other pictures than the others.
std::string refusal(const engine::PictureFiles& common, const engine::PictureFiles& its) {
  const Communicator world = Communicator::world();
  engine::PictureFiles mine = world.rank() + 1 == world.size() ? its : common;
  engine::PictureRecords records;
  records.pictures.resize(static_cast<std::size_t>(mine.paths.size()), {100, 0, 7, true});
  try {
    expect_same_pictures(
        engine::Dataset(std::move(mine), "d", 3), records, "pictures for training", world);
  } catch (const engine::AgreedError& error) {
    return error.what();
  }
  return "";
}

engine::PictureFiles pictures(const List& paths, std::vector<int> labels) {
  engine::PictureFiles files;
  for (const std::string& path : paths) {
    files.paths.add(path);
  }
  files.labels = std::move(labels);
  files.class_names = {"ant", "bee"};
  files.list = "d.list";
  files.line_numbers.assign(paths.size(), 1);
  return files;
}

TEST_CASE("the first picture that differs is named, with the ranks that differ") {
  if (Communicator::world().size() == 1) {
    return;
  }
  const auto says = [](const std::string& message, const char* part) {
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
  };
  const engine::PictureFiles all = pictures({"a.png", "b.png", "c.png"}, {0, 1, 0});
  CHECK(refusal(all, all).empty());
  says(refusal(all, pictures({"a.png", "c.png"}, {0, 0})), " lacks b.png among its pictures");
  says(refusal(pictures({"a.png", "c.png"}, {0, 0}), all), " has b.png among its pictures");
  says(refusal(all, pictures({"a.png", "b.png", "c.png"}, {0, 0, 0})), "class ant instead of bee");
  says(refusal(all, pictures({"b.png", "a.png", "c.png"}, {1, 0, 0})), "in a different order");
  engine::PictureFiles renamed = all;
  renamed.class_names[1] = "wasp";
  says(refusal(all, renamed), " lacks bee among its classes");
  // Each machine may keep them in a place of its own.
  CHECK(refusal(pictures({"/home/a/x/1.png", "/home/a/y/2.png"}, {0, 1}),
                pictures({"/media/card/x/1.png", "/media/card/y/2.png"}, {0, 1}))
            .empty());
}

}  // namespace
