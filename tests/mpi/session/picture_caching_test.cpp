// Where decoded pictures are kept, and what of it each rank plans with.

#include "engine/session/picture_caching.h"

#include <limits>
#include <string>
#include <vector>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "engine/comm/agreement.h"
#include "engine/session/memory_needs.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::DataNeeds;
using engine::MemoryLeft;
using engine::PictureCacheRequest;
using engine::PictureCaching;
using Place = PictureCacheRequest::Place;

constexpr Index kPlenty = std::numeric_limits<Index>::max();
constexpr Index kCachedPictures = 100;
constexpr Index kCachedBytes = 1 << 20;

DataNeeds needs_of(Index pictures) {
  DataNeeds needs;
  needs.own_pictures = pictures;
  needs.own_cached_bytes = pictures * (kCachedBytes / kCachedPictures);
  return needs;
}

PictureCaching caching(const PictureCacheRequest& request,
                       const MemoryLeft& left,
                       const DataNeeds& needs,
                       bool parts = false) {
  static const engine::SessionObserver kNobody;
  static const Communicator kWorld = Communicator::world();
  return {
      {.request = request, .run = "runs/a", .parts = parts, .left = left}, needs, kWorld, kNobody};
}

// What a machine takes for all pictures, in memory or without them.
Index memory_for(Index pictures, bool in_memory) {
  const Index bytes = in_memory ? pictures * (kCachedBytes / kCachedPictures) : 0;
  return engine::PictureTable::memory_bytes(pictures, bytes);
}

TEST_CASE(
    "pictures are kept in memory where each rank has as much again left, else in the run's "
    "folder") {
  const int ranks = Communicator::world().size();
  const int rank = Communicator::world().rank();
  const DataNeeds needs = needs_of(kCachedPictures);
  const Index all = memory_for(kCachedPictures, true);
  const Index share = (all + ranks - 1) / ranks;
  const auto place = [&](const MemoryLeft& left) { return caching({}, left, needs).place(); };
  CHECK(place({kPlenty, kPlenty}) == "memory");
  CHECK(place({2 * all, share}) == "memory");
  CHECK(place({2 * all - 1, share}) == "runs/a/pictures");
  CHECK(place({2 * all, share - 1}) == "runs/a/pictures");
  // All go by the one that has least.
  CHECK(place({kPlenty, rank == ranks - 1 ? 0 : kPlenty}) == "runs/a/pictures");
}

TEST_CASE("ranks of a machine plan with equal shares of what they keep together") {
  const int ranks = Communicator::world().size();
  const DataNeeds needs = needs_of(kCachedPictures);
  const auto planned = [&](const PictureCacheRequest& request, bool parts) {
    return caching(request, {kPlenty, kPlenty}, needs, parts).planned_bytes();
  };
  const auto share = [&](Index bytes) { return (bytes + ranks - 1) / ranks; };
  CHECK(planned({}, false) == share(memory_for(kCachedPictures, true)));
  CHECK(planned({Place::Folder, "kept"}, false) == share(memory_for(kCachedPictures, false)));
  CHECK(planned({Place::Off}, false) == 0);
  // Each has pictures of its own.
  CHECK(planned({}, true) == share(memory_for(ranks * kCachedPictures, true)));
}

TEST_CASE("ranks that do not read keep nothing, and where nothing is decoded nobody does") {
  const bool reads = Communicator::world().rank() == Communicator::world().size() - 1;
  PictureCaching alone = caching({}, {kPlenty, kPlenty}, needs_of(reads ? kCachedPictures : 0));
  CHECK(alone.place() == "memory");
  CHECK(alone.planned_bytes() == memory_for(kCachedPictures, true));
  alone.open();
  CHECK((alone.cache() != nullptr) == reads);
  PictureCaching nobody = caching({}, {kPlenty, kPlenty}, {});
  CHECK(nobody.place().empty());
  CHECK(!nobody.is_of_use());
  nobody.open();
  CHECK(nobody.cache() == nullptr);
}

TEST_CASE("where a cache takes more than a machine has, that is said with what to do") {
  const Communicator world = Communicator::world();
  partitioner::Network network;
  network.image = {1, 4, 4};
  add_layer(network, partitioner::Convolution{.filters = 2, .size = 1}, {partitioner::kImage});
  const partitioner::Plan plan = make_plan(
      network,
      tests::partition_of(network, world.size(), {{0, 0}}, {tests::images_cut(world.size())}),
      world.size());
  partitioner::ReportOptions options;
  CHECK_NOTHROW(expect_memory(planned_memory_of_ranks(network, plan, options), "m.cfg", world));
  options.memory.cache_bytes = Index{1} << 50U;
  CHECK_THROWS_WITH_AS(
      expect_memory(planned_memory_of_ranks(network, plan, options), "m.cfg", world),
      doctest::Contains("--cache FOLDER"),
      engine::AgreedError);
}

}  // namespace
