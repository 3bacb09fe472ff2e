// Training that goes on from what was kept of it outside its processes. Each device has a folder of
// its own, as if it had a memory of its own; what is in them when a run is cut off is copied.

#include "engine/recovery/kept_state.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "tests/support/random_network.h"
#include "tests/support/replica_training.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/comm/texts_of_ranks.h"
#include "engine/execution/parameter_chunks.h"
#include "engine/recovery/slot_file.h"
#include "engine/train/pass_end.h"
#include "engine/train/verifying/copy_equality.h"
#include "partitioner/base/errors.h"
#include "partitioner/plan/kept_parts.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

namespace fs = std::filesystem;

using engine::Communicator;
using engine::KeptState;
using engine::KeptStep;
using engine::Trainer;
using partitioner::Compression;
using partitioner::Network;
using partitioner::Partition;

// A folder for each of some devices, on which ranks lie in turn, and copies of all of them.
class Devices {
 public:
  Devices(const Communicator& world, int count)
      : world_(world), count_(std::min(count, world.size())) {
    if (world.rank() == 0) {
      own_.emplace();
    }
    root_ = engine::texts_of_ranks(world, own_ ? own_->path().string() : std::string())[0];
    make("now");
  }
  ~Devices() { world_.barrier(); }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  [[nodiscard]] int count() const { return count_; }
  // That of this rank, in a copy.
  [[nodiscard]] fs::path folder(const std::string& copy = "now") const {
    return root_ / copy / std::to_string(world_.rank() % count_);
  }

  // What all devices have now, but for one that is lost; -1: none is.
  void copy(const std::string& name, int lost = -1) const {
    world_.barrier();
    if (world_.rank() == 0) {
      fs::remove_all(root_ / name);
      fs::copy(root_ / "now", root_ / name, fs::copy_options::recursive);
    }
    world_.barrier();
    if (lost >= 0) {
      lose(name, lost);
    }
  }
  void lose(const std::string& name, int device) const {
    world_.barrier();
    if (world_.rank() == 0) {
      fs::remove_all(root_ / name / std::to_string(device));
      fs::create_directory(root_ / name / std::to_string(device));
    }
    world_.barrier();
  }
  void make(const std::string& name) const {
    world_.barrier();
    if (world_.rank() == 0) {
      for (int device = 0; device < count_; ++device) {
        fs::create_directories(root_ / name / std::to_string(device));
      }
    }
    world_.barrier();
  }

 private:
  const Communicator& world_;
  int count_;
  std::optional<tests::TemporaryFolder> own_;
  fs::path root_;
};

struct Way {
  Network network;
  Partition partition;
  Index images = 1;  // of a pass
  engine::TrainerOptions options;
};

class Run {
 public:
  Run(const Way& way, const Communicator& world)
      : way_(way),
        world_(world),
        plan_(make_plan(way.network, way.partition, way.images)),
        trainer_(way_.network, plan_, world, way.options),
        pictures_(engine::RandomPictures{}, plan_, world) {}

  double step() { return trainer_.step(pictures_).loss; }
  [[nodiscard]] Trainer& trainer() { return trainer_; }
  [[nodiscard]] const partitioner::Plan& plan() const { return plan_; }

  [[nodiscard]] std::unique_ptr<KeptState> kept(const fs::path& folder) {
    return std::make_unique<KeptState>(folder, way_.network, plan_, trainer_, world_);
  }
  void keep(KeptState& kept, double loss = 0.5) {
    kept.keep({trainer_.steps_done(), loss, 0.25}, 10 * trainer_.steps_done());
  }
  [[nodiscard]] std::optional<KeptStep> restore(const fs::path& folder) {
    return restore_kept_state(folder, way_.network, plan_, trainer_, world_);
  }

  // All that this rank has learnt and goes on from.
  [[nodiscard]] std::vector<float> all() {
    std::vector<float> all;
    const auto add = [&](std::span<const float> some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    for (const auto& parameter : trainer_.execution().parameters().all()) {
      add(parameter.values.span());
    }
    for (const auto& state : trainer_.optimizer().states()) {
      add(state.first.span());
      add(state.second.span());
      add(state.average.span());
    }
    for (const std::span<float> array : trainer_.own_arrays()) {
      add(array);
    }
    return all;
  }

  // Of this rank.
  [[nodiscard]] std::vector<float> values() {
    std::vector<float> all;
    for (const auto& parameter : trainer_.execution().parameters().all()) {
      all.insert(
          all.end(), parameter.values.data(), parameter.values.data() + parameter.values.size());
    }
    return all;
  }

  // Values and states of the optimizer, whole, on rank 0.
  [[nodiscard]] std::vector<float> whole() {
    std::vector<float> all;
    const auto add = [&](const std::vector<engine::PlacedRun>& from, std::span<const float> mine) {
      gather_chunks(world_, from, mine.data(), [&](std::span<const float> chunk) {
        all.insert(all.end(), chunk.begin(), chunk.end());
      });
    };
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
      const partitioner::ParameterPlan& parameter = plan_.parameters[i];
      add(engine::owned_values(parameter),
          trainer_.execution().parameters().all()[i].values.span());
      if (is_learnt(parameter)) {
        add(engine::owned_states(parameter), trainer_.optimizer().states()[i].first.span());
        if (trainer_.optimizer().trained().adam) {
          add(engine::owned_states(parameter), trainer_.optimizer().states()[i].second.span());
        }
      }
      if (trainer_.optimizer().trained().averages) {
        add(engine::owned_states(parameter), trainer_.optimizer().states()[i].average.span());
      }
    }
    return all;
  }

 private:
  Way way_;
  const Communicator& world_;
  partitioner::Plan plan_;
  Trainer trainer_;
  engine::DataLoader pictures_;
};

Way tiled_way(const Communicator& world, bool adam, const Compression& compression) {
  Way way{.network = tests::classifier(true), .partition = {}, .images = 2, .options = {}};
  way.partition = tests::partition_of(
      way.network,
      world.size(),
      {{0, 1}, {2, 4}},
      {tests::grid(world.size()), tests::images_cut(std::min(world.size(), 2))});
  way.partition.gradient_reduction = {.bucket_bytes = 1, .compression = compression};
  way.options.training.batch = 4;
  way.options.training.subdivisions = 2;
  way.options.training.adam = adam;
  way.options.training.ema_decay = 0.99;
  way.options.training.learning_rate = adam ? 1e-2 : 5e-2;
  way.options.seed = 5;
  return way;
}

Way random_way(std::uint64_t seed, const Communicator& world, Index passes, bool adam) {
  const tests::RandomCase random = tests::random_case(seed, world.size(), {.batch = 2});
  Way way{.network = random.network,
          .partition = random.partition,
          .images = random.batch,
          .options = {}};
  way.options.training.batch = passes * random.batch;
  way.options.training.subdivisions = passes;
  way.options.training.adam = adam;
  way.options.training.ema_decay = adam ? 0.99 : 0;
  way.options.training.learning_rate = 1e-4;
  way.options.seed = seed;
  return way;
}

Way with_replicated_optimizer(Way way) {
  way.partition.gradient_reduction.optimizer = partitioner::OptimizerStates::Replicated;
  return way;
}

Way way_of_replicas(const Communicator& world, const tests::Tie& tie, bool adam) {
  const tests::Settings settings{
      .normalizes = true, .adam = adam, .compression = tie.compression, .post_local_steps = 2};
  Way way{.network = tests::classifier(true),
          .partition = {},
          .images = tests::replicas_of(world) * tests::kShare / 2,
          .options = tests::options(tests::replicas_of(world), settings)};
  way.partition = tests::partition_of_replicas(way.network, world.size(), tie.sync);
  way.partition.gradient_reduction = {.bucket_bytes = 1, .compression = tie.compression};
  return way;
}

std::vector<Way> ways_to_keep(const Communicator& world) {
  std::vector<Way> ways;
  for (const Compression& compression : tests::kCompressions) {
    for (const bool adam : {false, true}) {
      ways.push_back(tiled_way(world, adam, compression));
    }
  }
  for (const bool adam : {false, true}) {
    ways.push_back(with_replicated_optimizer(tiled_way(world, adam, Compression::Exact)));
  }
  for (const tests::Tie& tie : tests::ties()) {
    ways.push_back(way_of_replicas(world, tie, tie.compression == Compression::Exact));
  }
  return ways;
}

constexpr int kStepsKept = 4;
constexpr int kStepsMore = 4;

// The run that nobody cuts off, and what the others should come to.
struct Undisturbed {
  std::vector<double> losses;
  std::vector<float> all;
};

Undisturbed undisturbed(const Way& way, const Communicator& world) {
  Run run(way, world);
  Undisturbed result;
  for (int i = 0; i < kStepsKept + kStepsMore; ++i) {
    result.losses.push_back(run.step());
  }
  result.all = run.all();
  return result;
}

// Goes on from what is in that copy of the devices, and ends with the same bits.
void goes_on(const Way& way,
             const Devices& devices,
             const std::string& copy,
             int step,
             const Undisturbed& expected,
             const Communicator& world) {
  Run run(way, world);
  const auto kept = run.restore(devices.folder(copy));
  REQUIRE(kept);
  CHECK(kept->step == step);
  CHECK(kept->images_seen == 10 * step);
  CHECK(kept->rank_states);
  REQUIRE(!kept->latest.empty());
  CHECK(kept->latest.back() == engine::StepLoss{step, 0.5, 0.25});
  CHECK(run.trainer().steps_done() == step);
  for (int i = step; i < kStepsKept + kStepsMore; ++i) {
    const double loss = run.step();
    CHECK(loss == expected.losses[static_cast<std::size_t>(i)]);
  }
  CHECK(run.all() == expected.all);
}

TEST_CASE("training that was cut off after a step goes on from it with the same bits") {
  const Communicator world = Communicator::world();
  for (const Way& way : ways_to_keep(world)) {
    CAPTURE(to_text(way.partition));
    CAPTURE(way.options.training.adam);
    Run run(way, world);
    if (!KeptState::is_kept(run.plan())) {
      continue;
    }
    const Undisturbed expected = undisturbed(way, world);
    const Devices devices(world, 2);
    const auto kept = run.kept(devices.folder());
    for (int i = 0; i < kStepsKept; ++i) {
      (void)run.step();
      run.keep(*kept);
    }
    devices.copy("cut");  // second copies may be under way
    kept->settle();
    goes_on(way, devices, "cut", kStepsKept, expected, world);
  }
}

TEST_CASE("any one device may be lost with all that it has kept") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  for (const Way& way : ways_to_keep(world)) {
    if (!KeptState::is_kept(Run(way, world).plan())) {
      continue;
    }
    CAPTURE(to_text(way.partition));
    CAPTURE(way.options.training.adam);
    const Undisturbed expected = undisturbed(way, world);
    for (const int count : {2, 3}) {
      CAPTURE(count);
      Run run(way, world);
      const Devices devices(world, count);
      const auto kept = run.kept(devices.folder());
      for (int i = 0; i < kStepsKept; ++i) {
        (void)run.step();
        run.keep(*kept);
      }
      devices.copy("early");  // second copies of the last step may be under way
      kept->settle();
      devices.copy("settled");
      for (int lost = 0; lost < devices.count(); ++lost) {
        CAPTURE(lost);
        devices.lose("settled", lost);
        goes_on(way, devices, "settled", kStepsKept, expected, world);
        devices.copy("settled");
      }
      devices.lose("early", 0);
      Run again(way, world);
      const auto found = again.restore(devices.folder("early"));
      CHECK(found.value_or(KeptStep()).step >= kStepsKept - 1);
    }
  }
}

TEST_CASE("steps are the same to the bit whether they are kept or not") {
  const Communicator world = Communicator::world();
  for (const Way& way : ways_to_keep(world)) {
    CAPTURE(to_text(way.partition));
    Run run(way, world);
    if (!KeptState::is_kept(run.plan())) {
      continue;
    }
    const Undisturbed expected = undisturbed(way, world);
    const Devices devices(world, 3);
    const auto kept = run.kept(devices.folder());
    for (const double loss : expected.losses) {
      CHECK(run.step() == loss);
      run.keep(*kept);
    }
    CHECK(run.all() == expected.all);
    kept->discard();
    world.barrier();
    CHECK(fs::is_empty(devices.folder()));
  }
}

TEST_CASE("what was kept under one partition is the same to the bit under another") {
  const Communicator world = Communicator::world();
  for (int number = 0; number < 12; ++number) {
    const std::uint64_t seed = tests::case_seed(number, world.size());
    CAPTURE(seed);
    Way way = random_way(seed, world, 1, number % 2 == 0);
    const Devices devices(world, 1 + number % 3);
    std::vector<float> expected;
    {
      Run run(way, world);
      const auto kept = run.kept(devices.folder());
      for (int i = 0; i < 3; ++i) {
        (void)run.step();
        run.keep(*kept);
      }
      kept->settle();
      expected = run.whole();
    }
    if (devices.count() > 1) {
      devices.lose("now", number % devices.count());
    }
    tests::Draw draw(seed + 1);
    way.partition = number % 4 == 3 ? single_tile(way.network)
                                    : random_partition(draw, way.network, way.images, world.size());
    if (number % 4 == 3) {
      way.partition = on_ranks(way.partition, {world.size() - 1}, world.size());
    }
    Run run(way, world);
    const auto kept = run.restore(devices.folder());
    REQUIRE(kept);
    CHECK(kept->step == 3);
    CHECK(run.whole() == expected);
  }
}

TEST_CASE("what the planner says of second copies is what is sent") {
  const Communicator world = Communicator::world();
  for (const Way& way : ways_to_keep(world)) {
    if (way.partition.gradient_reduction.compression != Compression::Exact ||
        way.partition.replicas.independent()) {
      continue;
    }
    CAPTURE(to_text(way.partition));
    Run run(way, world);
    const Devices devices(world, world.size());  // each rank has its own
    const auto kept = run.kept(devices.folder());
    Index planned = 0;
    for (const auto& copy :
         second_copies(run.plan(), engine::trained_arrays(way.options.training), {.is_on = true})) {
      planned += copy.from == world.rank() ? copy.elements : 0;
    }
    CHECK(kept->sent_bytes() == planned * static_cast<Index>(sizeof(float)));
  }
}

TEST_CASE("with the optimizer's state replicated, little is sent to be kept") {
  const Communicator world = Communicator::world();
  const Way way = tiled_way(world, true, Compression::Exact);
  const Devices devices(world, world.size());
  Run sharded(way, world);
  Run replicated(with_replicated_optimizer(way), world);
  const auto sent_of = [&](Run& run) {
    const auto bytes = static_cast<double>(run.kept(devices.folder())->sent_bytes());
    return engine::sum_over_ranks(world, bytes);
  };
  if (world.size() > 1) {
    CHECK(sent_of(replicated) < 0.5 * sent_of(sharded));
  }
}

TEST_CASE("a replicated optimizer comes to the same bits as a sharded one, on all ranks") {
  const Communicator world = Communicator::world();
  for (int number = 0; number < 12; ++number) {
    const std::uint64_t seed = tests::case_seed(number, world.size());
    CAPTURE(seed);
    Way way = random_way(seed, world, 2, number % 2 == 0);
    way.partition.gradient_reduction.optimizer = partitioner::OptimizerStates::Sharded;
    struct Result {
      std::vector<double> losses;
      std::vector<float> whole;
      std::vector<float> values;
    };
    const auto run_of = [&](const Way& by) {
      Run run(by, world);
      Result result;
      for (int step = 0; step < 3; ++step) {
        result.losses.push_back(run.step());
      }
      result.whole = run.whole();
      result.values = run.values();
      CHECK_FALSE(unequal_copies(run.trainer().execution()));
      return result;
    };
    const Result sharded = run_of(way);
    const Result replicated = run_of(with_replicated_optimizer(way));
    CHECK(replicated.losses == sharded.losses);
    CHECK(replicated.whole == sharded.whole);
    CHECK(replicated.values == sharded.values);
  }
}

TEST_CASE("what replicas had in common goes on under a partition without them") {
  const Communicator world = Communicator::world();
  for (const tests::Tie& tie : tests::ties()) {
    const Way way = way_of_replicas(world, tie, false);
    Run run(way, world);
    if (!run.plan().replicas.independent() || !KeptState::is_kept(run.plan())) {
      continue;
    }
    CAPTURE(to_text(way.partition));
    const Devices devices(world, 2);
    const auto kept = run.kept(devices.folder());
    for (int i = 0; i < kStepsKept; ++i) {
      (void)run.step();
      run.keep(*kept);
    }
    kept->settle();
    std::vector<float> expected;
    {
      const auto common = run.trainer().common_model();
      expected = run.whole();
    }
    Way without = way;
    without.partition = tests::fused(way.network, world.size(), tests::images_cut(1));
    Run other(without, world);
    const auto found = other.restore(devices.folder());
    REQUIRE(found);
    CHECK(found->step == kStepsKept);
    CHECK_FALSE(found->rank_states);
    const std::vector<float> whole = other.whole();
    REQUIRE(whole.size() == expected.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      REQUIRE(whole[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("states of another network, garbage and torn files are no states") {
  const Communicator world = Communicator::world();
  const Way way = tiled_way(world, true, Compression::Exact);
  const Devices devices(world, 2);
  Run run(way, world);
  CHECK_FALSE(run.restore(devices.folder()));
  CHECK_FALSE(run.restore(devices.folder("nowhere")));
  {
    const auto kept = run.kept(devices.folder());
    (void)run.step();
    run.keep(*kept);
  }
  Way other = way;
  other.network = tests::classifier(false);
  other.partition.network = fingerprint(other.network);
  CHECK_FALSE(Run(other, world).restore(devices.folder()));
  Way other_optimizer = way;
  other_optimizer.options.training.adam = false;
  CHECK_FALSE(Run(other_optimizer, world).restore(devices.folder()));
  // Files of this kind that somebody else may have put there, beside the true ones.
  devices.copy("garbage");
  if (world.rank() == 0) {
    tests::Draw draw(3);
    for (int number = 0; number < 20; ++number) {
      std::string text(static_cast<std::size_t>(draw.between(0, 5000)), '\0');
      for (char& letter : text) {
        letter = static_cast<char>(draw.between(0, 255));
      }
      tests::put_bytes(devices.folder("garbage") / (std::to_string(number) + ".kept"), text);
    }
    fs::create_directory(devices.folder("garbage") / "folder.kept");
    fs::create_symlink("/dev/zero", devices.folder("garbage") / "link.kept");
    // Sound ones, of a later step, that lack almost all.
    engine::KeptText text{.network = fingerprint(way.network),
                          .start = 1,
                          .plan = "p",
                          .adam = true,
                          .parts = {{{0, engine::ArrayKind::Values, 0}, {0, 2}},
                                    {{999, engine::ArrayKind::First, 7}, {5, 6}}}};
    engine::SlotFile(devices.folder("garbage") / "later.kept", 4000, 3)
        .write(1000, to_text(text), {std::vector<float>{1, 2, 3}});
  }
  world.barrier();
  Run again(way, world);
  const auto found = again.restore(devices.folder("garbage"));
  REQUIRE(found);
  CHECK(found->step == 1);
  CHECK(again.all() == run.all());
}

TEST_CASE("files of an earlier start stay until the later one can do without") {
  const Communicator world = Communicator::world();
  const Way way = tiled_way(world, false, Compression::Exact);
  const Devices devices(world, 2);
  Run run(way, world);
  {
    const auto first = run.kept(devices.folder());
    (void)run.step();
    run.keep(*first);
  }
  const auto second = run.kept(devices.folder());
  (void)run.step();
  run.keep(*second);
  second->settle();
  devices.copy("early");
  (void)run.step();
  run.keep(*second);
  second->settle();
  devices.copy("late");
  const auto names = [&](const std::string& copy) {
    return std::distance(fs::directory_iterator(devices.folder(copy)), {});
  };
  CHECK(names("early") == 2 * names("late"));
}

}  // namespace
