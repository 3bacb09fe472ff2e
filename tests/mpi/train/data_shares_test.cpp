// Ranks that train on data of their own, beside one rank that has all of it.

#include <memory>
#include <numeric>
#include <vector>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "engine/train/evaluation.h"
#include "engine/train/metrics/classification_metrics.h"
#include "engine/train/trainer.h"
#include "partitioner/plan/image_shares.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchOptions;
using engine::BatchSource;
using engine::Communicator;
using engine::DataLoader;
using engine::DataShares;
using engine::Split;
using engine::Trainer;
using partitioner::kImage;
using partitioner::Network;

constexpr partitioner::MapShape kSharesPicture{1, 8, 8};
constexpr Index kSharesBatch = 12;
constexpr Index kPasses = 2;  // of a step
constexpr int kSteps = 20;

Network shares_classifier(bool batch_normalize) {
  Network network;
  network.image = kSharesPicture;
  add_layer(network,
            partitioner::Convolution{
                .filters = 8, .size = 3, .padding = 1, .batch_normalize = batch_normalize},
            {kImage});
  add_layer(network, partitioner::MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, partitioner::Dropout{.probability = 0.2}, {1});
  add_layer(network, partitioner::Connected{.outputs = 3}, {2});
  add_layer(network, partitioner::Softmax{}, {3});
  return network;
}

// Pictures [begin, end) of a row, of three classes.
engine::Dataset shares_pictures(Index begin, Index end) {
  engine::BytePictures data;
  data.shape = kSharesPicture;
  data.class_names = engine::numbered_names(3);
  for (Index i = begin; i < end; ++i) {
    const auto label = static_cast<std::uint8_t>(i % 3);
    for (Index cell = 0; cell < kSharesPicture.volume(); ++cell) {
      const double noise = engine::random_uniform(
          3, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(cell));
      data.pixels.push_back(static_cast<std::uint8_t>(80 * noise + 60 * (cell % 3 == label)));
    }
    data.labels.push_back(label);
  }
  return {std::move(data), "made", 1};
}

// Unlike sizes; with four ranks or more one of them has a single picture and one none.
std::vector<Index> sizes_of(int ranks) {
  std::vector<Index> sizes;
  for (int rank = 0; rank < ranks; ++rank) {
    sizes.push_back(rank == 2 ? 1 : rank == 3 ? 0 : 30 + 23 * rank);
  }
  return sizes;
}

BatchSource shares_source(Index begin,
                          Index end,
                          const std::shared_ptr<const DataShares>& shares,
                          int part,
                          Split split) {
  BatchOptions options;
  options.rules.input = options.rules.picture = kSharesPicture;
  options.rules.augmentation.angle = 10;
  options.batch = kSharesBatch / kPasses;
  options.seed = 9;
  options.split = split;
  options.shares = shares;
  options.part = part;
  return {shares_pictures(begin, end), options, "net.cfg"};
}

struct Course {
  std::vector<double> losses;
  engine::EvaluationResult tested;
};

// Steps, and a test of what was learnt.
Course train(const Network& network,
             const partitioner::Plan& plan,
             const Communicator& communicator,
             BatchSource training,
             BatchSource testing) {
  partitioner::TrainingOptions options;
  options.batch = kSharesBatch;
  options.subdivisions = kPasses;
  options.learning_rate = 0.05;
  Trainer trainer(network, plan, communicator, {options, engine::BatchNormMode::Sync, 5});
  DataLoader loader(std::move(training), plan, communicator);
  DataLoader tests(std::move(testing), plan, communicator);
  Course course;
  for (int step = 0; step < kSteps; ++step) {
    course.losses.push_back(trainer.step(loader).loss);
  }
  engine::ClassificationMetrics metric(3);  // which ends here
  course.tested = evaluate(trainer.execution(), tests, metric);
  course.tested.metric = nullptr;
  return course;
}

TEST_CASE("ranks with data of their own learn what one rank with all of it learns") {
  const Communicator world = Communicator::world();
  const std::vector<Index> sizes = sizes_of(world.size());
  const Index all = std::accumulate(sizes.begin(), sizes.end(), Index{0});
  const auto rank = static_cast<std::size_t>(world.rank());
  const Index first =
      std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank), Index{0});
  const auto shares =
      std::make_shared<const DataShares>(DataShares::for_training(sizes, kSharesBatch / kPasses));
  const auto test_shares =
      std::make_shared<const DataShares>(DataShares::for_testing(sizes, shares->most_images()));
  for (const bool batch_normalize : {false, true}) {
    const Network network = shares_classifier(batch_normalize);
    const partitioner::Partition partition = with_image_shares(
        tests::partition_of(
            network, world.size(), {{0, 2}, {3, 4}}, {tests::images_cut(world.size())}),
        shares->most_images(),
        "shares");
    const std::vector<Index>& most = shares->most_images();
    const partitioner::Plan plan =
        make_plan(network, partition, std::accumulate(most.begin(), most.end(), Index{0}));
    const Course found =
        train(network,
              plan,
              world,
              shares_source(first, first + sizes[rank], shares, world.rank(), Split::Train),
              shares_source(first, first + sizes[rank], test_shares, world.rank(), Split::Test));
    CHECK(found.tested.pictures == all);
    if (world.rank() != 0) {
      continue;
    }
    const partitioner::Partition alone =
        with_image_shares(partitioner::single_tile(network), {plan.batch}, "shares");
    // One rank with the same global batches: all parts in one data set.
    const auto one_test =
        std::make_shared<const DataShares>(DataShares::for_testing({all}, {plan.batch}));
    const Course expected =
        train(network,
              make_plan(network, alone, plan.batch),
              Communicator::self(),
              shares_source(0, all, shares, BatchOptions::kAllParts, Split::Train),
              shares_source(0, all, one_test, BatchOptions::kAllParts, Split::Test));
    for (int step = 0; step < kSteps; ++step) {
      const auto at = static_cast<std::size_t>(step);
      CHECK(found.losses[at] == doctest::Approx(expected.losses[at]).epsilon(2e-4));
    }
    CHECK(found.losses.back() != found.losses.front());
    CHECK(found.tested.loss == doctest::Approx(expected.tested.loss).epsilon(2e-4));
    CHECK(found.tested.score() == expected.tested.score());
  }
}

}  // namespace
