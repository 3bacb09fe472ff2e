// Which rank reads which pictures of a pass.

#include "engine/train/feed.h"

#include <numeric>
#include <optional>
#include <vector>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "engine/train/trainer.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchSource;
using engine::Communicator;
using engine::Feed;
using engine::Index;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;

constexpr partitioner::MapShape kPicture{3, 12, 14};

Network classifier() {
  Network network;
  network.image = kPicture;
  add_layer(network, partitioner::Convolution{.filters = 4, .size = 3, .padding = 1}, {kImage});
  add_layer(network, partitioner::AvgPool{}, {0});
  add_layer(network, partitioner::Connected{.outputs = 2}, {1});
  add_layer(network, partitioner::Softmax{}, {2});
  return network;
}

BatchSource source(Index pictures, Index batch) {
  engine::BytePictures data;
  data.shape = kPicture;
  data.pixels.resize(static_cast<std::size_t>(pictures * kPicture.volume()), 7);
  data.labels.resize(static_cast<std::size_t>(pictures));
  data.class_names = engine::numbered_names(2);
  engine::BatchOptions options;
  options.rules.input = kPicture;
  options.rules.picture = kPicture;
  options.batch = batch;
  return {engine::Dataset(std::move(data), "made", 3), options, "net.cfg"};
}

// How many pictures each rank reads for two passes of `batch` images of a data set that is large.
std::vector<Index> pictures_read(const Partition& partition, Index batch) {
  const Communicator world = Communicator::world();
  const Network network = classifier();
  const partitioner::Plan plan = make_plan(network, partition, batch);
  engine::TrainerOptions options;
  options.training.batch = batch;
  engine::Trainer trainer(network, plan, world, options);
  const bool reads = Feed::reads(plan, world.rank());
  Feed feed(reads ? std::optional<BatchSource>(source(100, batch)) : std::nullopt, plan, world);
  for (Index step = 0; step < 2; ++step) {
    CHECK(!feed.load(step, trainer.execution()));
  }
  return world.of_ranks(feed.pictures_read());
}

TEST_CASE("images are read by the rank that has them, once") {
  const int ranks = Communicator::world().size();
  const Network network = classifier();
  const std::vector<Index> read = pictures_read(
      tests::partition_of(network, ranks, {{0, 3}}, {tests::images_cut(ranks)}), 2 * ranks);
  CHECK(read == std::vector<Index>(static_cast<std::size_t>(ranks), 4));
}

TEST_CASE("all tiles of a picture read it once for each pass, and idle ranks nothing") {
  const int ranks = Communicator::world().size();
  const Network network = classifier();
  const int busy = std::max(ranks - 1, 1);
  Partition partition = tests::partition_of(
      network, busy, {{0, 0}, {1, 3}}, {tests::grid(busy), tests::images_cut(1)});
  partition.ranks = ranks;
  const std::vector<Index> read = pictures_read(partition, 3);
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(read[static_cast<std::size_t>(rank)] == (rank < busy ? 6 : 0));
  }
}

TEST_CASE("a single reader reads each picture once for all") {
  const int ranks = Communicator::world().size();
  const Network network = classifier();
  Partition partition = tests::partition_of(network, ranks, {{0, 3}}, {tests::images_cut(ranks)});
  partition.reader = ranks - 1;
  const std::vector<Index> read = pictures_read(partition, ranks);
  CHECK(std::accumulate(read.begin(), read.end(), Index{0}) == 2 * ranks);
  CHECK(read.back() == 2 * ranks);
}

}  // namespace
