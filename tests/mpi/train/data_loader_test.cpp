// Which rank reads which pictures of a pass, and what it then has.

#include "engine/train/data_loader.h"

#include <numeric>
#include <optional>
#include <vector>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "engine/train/trainer.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchSource;
using engine::Communicator;
using engine::DataLoader;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;

constexpr partitioner::MapShape kLoadedPicture{3, 12, 14};

Network loaded_classifier() {
  Network network;
  network.image = kLoadedPicture;
  add_layer(network, partitioner::Convolution{.filters = 4, .size = 3, .padding = 1}, {kImage});
  add_layer(network, partitioner::AvgPool{}, {0});
  add_layer(network, partitioner::Connected{.outputs = 2}, {1});
  add_layer(network, partitioner::Softmax{}, {2});
  return network;
}

BatchSource loaded_source(Index pictures, Index batch) {
  engine::BytePictures data;
  data.shape = kLoadedPicture;
  data.pixels.resize(static_cast<std::size_t>(pictures * kLoadedPicture.volume()), 7);
  data.labels.resize(static_cast<std::size_t>(pictures));
  data.class_names = engine::numbered_names(2);
  engine::BatchOptions options;
  options.rules.input = kLoadedPicture;
  options.rules.picture = kLoadedPicture;
  options.batch = batch;
  return {engine::Dataset(std::move(data), "made", 3), options, "net.cfg"};
}

// How many pictures each rank reads for two passes of `batch` images of a data set that is large.
std::vector<Index> pictures_read(const Partition& partition, Index batch) {
  const Communicator world = Communicator::world();
  const Network network = loaded_classifier();
  const partitioner::Plan plan = make_plan(network, partition, batch);
  engine::TrainerOptions options;
  options.training.batch = batch;
  engine::Trainer trainer(network, plan, world, options);
  const bool reads = DataLoader::reads(plan, world.rank());
  DataLoader loader(
      reads ? std::optional<BatchSource>(loaded_source(100, batch)) : std::nullopt, plan, world);
  for (Index step = 0; step < 2; ++step) {
    CHECK(!loader.load(step, trainer.execution()));
  }
  return world.of_ranks(loader.pictures_read());
}

TEST_CASE("images are read by the rank that has them, once") {
  const int ranks = Communicator::world().size();
  const Network network = loaded_classifier();
  const std::vector<Index> read = pictures_read(
      tests::partition_of(network, ranks, {{0, 3}}, {tests::images_cut(ranks)}), 2 * ranks);
  CHECK(read == std::vector<Index>(static_cast<std::size_t>(ranks), 4));
}

TEST_CASE("all tiles of a picture read it once for each pass, and idle ranks nothing") {
  const int ranks = Communicator::world().size();
  const Network network = loaded_classifier();
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
  const Network network = loaded_classifier();
  Partition partition = tests::partition_of(network, ranks, {{0, 3}}, {tests::images_cut(ranks)});
  partition.reader = partitioner::Reader::rank(ranks - 1);
  const std::vector<Index> read = pictures_read(partition, ranks);
  CHECK(std::accumulate(read.begin(), read.end(), Index{0}) == 2 * ranks);
  CHECK(read.back() == 2 * ranks);
}

TEST_CASE("all ranks have the targets of a pass, and none where no picture is left") {
  const Communicator world = Communicator::world();
  const Network network = loaded_classifier();
  for (const auto& reader :
       {partitioner::Reader::every_rank(), partitioner::Reader::rank(world.size() - 1)}) {
    Partition partition =
        tests::partition_of(network, world.size(), {{0, 3}}, {tests::images_cut(world.size())});
    partition.reader = reader;
    const partitioner::Plan plan = make_plan(network, partition, 4);
    engine::TrainerOptions options;
    options.training.batch = 4;
    engine::Trainer trainer(network, plan, world, options);
    engine::BytePictures data;
    data.shape = kLoadedPicture;
    data.pixels.resize(static_cast<std::size_t>(6 * kLoadedPicture.volume()));
    data.labels = {0, 1, 1, 0, 1, 1};
    data.class_names = engine::numbered_names(2);
    engine::BatchOptions batch;
    batch.rules.input = kLoadedPicture;
    batch.rules.picture = kLoadedPicture;
    batch.batch = 4;
    batch.split = engine::Split::Test;
    std::optional<BatchSource> source;
    if (DataLoader::reads(plan, world.rank())) {
      source.emplace(engine::Dataset(std::move(data), "made", 3), batch, "net.cfg");
    }
    DataLoader loader(std::move(source), plan, world);
    CHECK(loader.size() == 6);
    CHECK(loader.class_names() == engine::numbered_names(2));
    CHECK(!loader.load(1, trainer.execution()));
    engine::Targets left = engine::class_targets({1, 1});
    left.resize(4);
    CHECK(loader.targets() == left);
    CHECK(!loader.load(0, trainer.execution()));
    CHECK(loader.targets() == engine::class_targets({0, 1, 1, 0}));
  }
}

TEST_CASE("random pictures are the same whatever the partition and the pass") {
  const Communicator world = Communicator::world();
  const Network network = loaded_classifier();
  const Partition partition =
      tests::partition_of(network, world.size(), {{0, 3}}, {tests::images_cut(world.size())});
  const partitioner::Plan plan = make_plan(network, partition, 4);
  engine::TrainerOptions options;
  options.training.batch = 4;
  engine::Trainer trainer(network, plan, world, options);
  engine::Execution<float>& execution = trainer.execution();
  DataLoader loader(engine::RandomPictures{.seed = 9}, plan, world);
  const Region mine = execution.image_region(world.rank());
  for (const Index pass : {0, 7}) {
    CHECK(!loader.load(pass, execution));
    CHECK(loader.targets() == engine::class_targets({0, 0, 0, 0}));
    if (mine.empty()) {
      continue;
    }
    // The first cell of each image here, by its position in the batch.
    for (Index n = mine.images.begin; n < mine.images.end; ++n) {
      float cell = 0;
      copy_out(engine::View<const float>(execution.image()),
               {{n, n + 1}, {1, 2}, {2, 3}, {3, 4}},
               &cell);
      const auto line = static_cast<std::uint64_t>((n * 3 + 1) * kLoadedPicture.rows + 2);
      CHECK(cell == static_cast<float>(engine::random_uniform(9, line, 3)));
    }
  }
}

}  // namespace
