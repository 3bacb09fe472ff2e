// Maps of the frozen trunk that are kept: steps and tests give the same bits as without.

#include "engine/train/trunk_cache.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/cuts.h"
#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/system/system_memory.h"
#include "engine/train/evaluation.h"
#include "engine/train/trainer.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::DataLoader;
using engine::Trainer;
using engine::TrunkCache;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;

constexpr Index kTrunkPictures = 5;
constexpr Index kTrunkPasses = 2;

engine::BatchSource trunk_pictures(const Network& network, Index batch, engine::Split split) {
  engine::BytePictures data;
  data.shape = network.image;
  for (Index i = 0; i < kTrunkPictures * network.image.volume(); ++i) {
    data.pixels.push_back(static_cast<std::uint8_t>(i * 37 % 251));
  }
  data.labels.assign(static_cast<std::size_t>(kTrunkPictures), 0);
  data.class_names = engine::numbered_names(1);
  engine::BatchOptions options;
  options.rules.input = network.image;
  options.rules.picture = network.image;
  options.batch = batch;
  options.split = split;
  options.passes = split == engine::Split::Train ? kTrunkPasses : 1;
  options.seed = 3;
  options.variants = 2;
  return {engine::Dataset(std::move(data), "made", network.image.channels), options, "net.cfg"};
}

// Of whatever a network says of an image.
class NoMetric final : public engine::Metric {
 public:
  void clear() override {}
  void accumulate(const engine::Outputs& /*outputs*/, const engine::Targets& /*targets*/) override {
  }
  void merge(const engine::Metric& /*other*/) override {}
  [[nodiscard]] std::vector<engine::MetricValue> result() const override { return {{"none", 0}}; }
};

struct TrunkRun {
  std::vector<double> losses;  // of steps, then of tests
  std::vector<float> values;   // of all parameters, whole, on rank 0
  Index given = 0;             // passes of steps
  Index given_tests = 0;       // passes of tests
  std::vector<std::string> warnings;
};

// Steps with a test after every second one, by maps that are kept where a folder says so: "" in
// memory.
TrunkRun trunk_run(const Network& network,
                   const Partition& partition,
                   Index batch,
                   const std::optional<std::filesystem::path>& kept,
                   const Communicator& world,
                   Index steps = 10) {
  const partitioner::Plan plan = make_plan(network, partition, batch);
  engine::TrainerOptions options;
  options.training.batch = batch * kTrunkPasses;
  options.training.subdivisions = kTrunkPasses;
  options.training.learning_rate = 1e-4;
  options.seed = 5;
  const auto loader = [&](engine::Split split) {
    return plan.reader.reads(world.rank()) ? std::optional(trunk_pictures(network, batch, split))
                                           : std::nullopt;
  };
  DataLoader training(loader(engine::Split::Train), plan, world);
  DataLoader testing(loader(engine::Split::Test), plan, world);
  Trainer trainer(network, plan, world, options);
  TrunkRun run;
  std::optional<TrunkCache> of_steps;
  std::optional<TrunkCache> of_tests;
  if (kept) {
    const auto warn = [&run](const std::string& text) { run.warnings.push_back(text); };
    of_steps.emplace(trainer.execution(), training, engine::TrunkCacheOptions{*kept, "a", warn});
    of_tests.emplace(trainer.execution(), testing, engine::TrunkCacheOptions{*kept, "b", warn});
    trainer.use(*of_steps);
  }
  for (Index step = 0; step < steps; ++step) {
    run.losses.push_back(trainer.step(training).loss);
    if (step % 2 == 1) {
      NoMetric metric;
      run.losses.push_back(
          evaluate(trainer.execution(), testing, metric, of_tests ? &*of_tests : nullptr).loss);
    }
  }
  auto& set = trainer.execution().parameters();
  for (const auto& parameter : set.all()) {
    const std::vector<float> whole = set.gather(parameter, parameter.values.data());
    run.values.insert(run.values.end(), whole.begin(), whole.end());
  }
  run.given = of_steps ? of_steps->passes_given() : 0;
  run.given_tests = of_tests ? of_tests->passes_given() : 0;
  return run;
}

// With a loss and layers that do not learn; nothing where a trunk cannot be kept.
std::optional<tests::RandomCase> random_trunk(std::uint64_t seed, int ranks) {
  tests::Draw draw(seed);
  tests::RandomCase random;
  random.batch = draw.between(1, 4);
  random.network = tests::random_network(
      draw,
      {.batch = random.batch, .of_detectors = draw.chance(0.5), .of_graphs = draw.chance(0.3)});
  if (random.network.image.channels != 1 && random.network.image.channels != 3) {
    return std::nullopt;
  }
  tests::add_losses(draw, random.network);
  random.partition = tests::random_partition(draw, random.network, random.batch, ranks);
  tests::draw_recomputation(draw, random.partition);
  if (draw.chance(0.5)) {
    tests::draw_kernels(draw, random);
  }
  if (!tests::freeze_some(draw, random.network) || frozen_trunk(random.network).empty()) {
    return std::nullopt;
  }
  const partitioner::Plan plan = make_plan(random.network, random.partition, random.batch);
  return trunk_obstacle(random.network, plan) ? std::nullopt : std::optional(random);
}

TEST_CASE("maps of the frozen trunk that are kept change no bit of steps and tests") {
  const Communicator world = Communicator::world();
  constexpr int kSeeds = 40;
  int cases = 0;
  Index given = 0;
  for (int i = 0; i < kSeeds; ++i) {
    const std::uint64_t seed = tests::case_seed(i, world.size()) + 40;
    const auto random = random_trunk(seed, world.size());
    if (!random) {
      continue;
    }
    ++cases;
    const auto run = [&](const std::optional<std::filesystem::path>& kept) {
      return trunk_run(random->network, random->partition, random->batch, kept, world);
    };
    INFO("seed ", seed, ":\n", tests::describe(*random));
    const TrunkRun expected = run(std::nullopt);
    const TrunkRun found = run("");
    given += found.given;
    CHECK_MESSAGE(found.losses == expected.losses, "seed ", seed, tests::describe(*random));
    CHECK_MESSAGE(found.values == expected.values, "seed ", seed, tests::describe(*random));
    CHECK(found.given_tests > 0);
  }
  CHECK(cases > kSeeds / 10);
  CHECK(given > cases);
}

// A chain with a loss, of which all but the end is frozen: tiles, then images.
tests::RandomCase frozen_chain(int ranks) {
  tests::RandomCase chain;
  chain.batch = 3;
  Network& network = chain.network;
  network.image = {3, 12, 10};
  add_layer(network, partitioner::Convolution{.filters = 8, .size = 3, .padding = 1}, {kImage});
  add_layer(network, partitioner::Convolution{.filters = 6, .size = 3, .padding = 1}, {0});
  add_layer(network, partitioner::AvgPool{}, {1});
  add_layer(network, partitioner::Connected{.outputs = 4}, {2});
  add_layer(network, partitioner::Softmax{}, {3});
  freeze(network, 1);
  chain.partition = tests::partition_of(
      network, ranks, {{0, 1}, {2, 4}}, {tests::images_cut(ranks), tests::images_cut(ranks)});
  return chain;
}

TEST_CASE("a folder has the maps for the next run, and what is damaged in it is computed again") {
  const Communicator world = Communicator::world();
  const tests::RandomCase chain = frozen_chain(world.size());
  const tests::TemporaryFolder folder;
  const auto run = [&](const std::optional<std::filesystem::path>& kept) {
    return trunk_run(chain.network, chain.partition, chain.batch, kept, world);
  };
  const TrunkRun expected = run(std::nullopt);
  const TrunkRun first = run(folder.path());
  CHECK(first.given > 0);
  const TrunkRun second = run(folder.path());
  CHECK(second.given > first.given);
  CHECK(second.given == 10 * kTrunkPasses);
  Index damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (entry.is_regular_file() && ++damaged % 2 == 0) {
      std::filesystem::resize_file(entry.path(), entry.file_size() - 4);
    }
  }
  const TrunkRun third = run(folder.path());
  // A file that says of itself that it has 4 GiB, and has.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (entry.is_regular_file()) {
      constexpr std::uint64_t kHead = 32;  // of which the second half begins with the length
      constexpr std::uint64_t kBytes = std::uint64_t{1} << 32U;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(kHead / 2).write(reinterpret_cast<const char*>(&kBytes), sizeof kBytes);
      file.close();
      std::filesystem::resize_file(entry.path(), kHead + kBytes);
      break;
    }
  }
  const Index before = engine::peak_resident_bytes();
  const TrunkRun fourth = run(folder.path());
  CHECK(engine::peak_resident_bytes() < before + (Index{1} << 30U));
  for (const TrunkRun& found : {first, second, third, fourth}) {
    CHECK(found.losses == expected.losses);
    CHECK(found.values == expected.values);
    CHECK(found.warnings.empty());
  }
}

TEST_CASE("a folder that cannot be written is told of once, and changes nothing") {
  const Communicator world = Communicator::world();
  const tests::RandomCase chain = frozen_chain(world.size());
  const tests::TemporaryFolder folder;
  std::ofstream(folder / "file") << "no folder";
  const auto run = [&](const std::optional<std::filesystem::path>& kept) {
    return trunk_run(chain.network, chain.partition, chain.batch, kept, world);
  };
  const TrunkRun found = run(folder / "file");
  const TrunkRun expected = run(std::nullopt);
  CHECK(found.losses == expected.losses);
  CHECK(found.values == expected.values);
  CHECK(found.given == 0);
  std::size_t most = 0;
  for (const std::size_t warnings : world.of_ranks(found.warnings.size())) {
    most = std::max(most, warnings);
  }
  CHECK(most == 2);  // of steps, and of tests
}

}  // namespace
