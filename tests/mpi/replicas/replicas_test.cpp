// Training on several replicas, synchronised in each way, beside training on one device.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/replica_training.h"
#include <doctest/doctest.h>

#include "engine/replicas/gossip.h"
#include "engine/train/trainer.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::DataLoader;
using engine::Parameter;
using engine::RandomPictures;
using engine::Trainer;
using partitioner::Compression;
using partitioner::Network;
using partitioner::Plan;
using partitioner::Synchronisation;
using partitioner::SyncMode;
using tests::classifier;
using tests::kApart;
using tests::kCompressions;
using tests::kShare;
using tests::options;
using tests::replicas_of;
using tests::Settings;
using tests::ties;
using tests::Training;

// Single precision, a few steps of a small network whose weights are about 1.
constexpr double kRounding = 2e-5;

// The same on this rank alone, of all images.
std::vector<float> on_one_device(const Settings& settings, Index steps, const Communicator& world) {
  const Network network = classifier(settings.normalizes);
  const Communicator self = Communicator::self();
  const Index replicas = replicas_of(world);
  const Plan plan = make_plan(network, single_tile(network), replicas * kShare / 2);
  Trainer trainer(network, plan, self, options(replicas, settings));
  DataLoader pictures(RandomPictures{}, plan, self);
  std::vector<float> all;
  for (Index i = 0; i < steps; ++i) {
    (void)trainer.step(pictures);
  }
  for (const Parameter<float>& parameter : trainer.execution().parameters().all()) {
    const float* values = parameter.values.data();
    all.insert(all.end(), values, values + parameter.values.size());
  }
  return all;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return most;
}

// On rank 0.
void check_near(const std::vector<float>& values,
                const std::vector<float>& expected,
                const Communicator& world) {
  if (world.rank() == 0) {
    CHECK(difference(values, expected) < kRounding);
  }
}

// Whether ranks with the same part of different replicas hold the same bits.
bool replicas_are_alike(Training& training, const Communicator& world) {
  const std::vector<float> mine = training.values();
  const auto all = world.gather_all(std::as_bytes(std::span(mine)));
  const auto apart = static_cast<std::size_t>(world.size() / replicas_of(world));
  bool alike = true;
  for (std::size_t rank = apart; rank < all.size(); ++rank) {
    alike = alike && all[rank] == all[rank % apart];
  }
  return alike;
}

TEST_CASE("replicas of tiles that are tied every step compute what one device computes") {
  const Communicator world = Communicator::world();
  for (const bool adam : {false, true}) {
    const Settings settings{.normalizes = true, .adam = adam};
    Training training({}, settings, world);
    training.steps(4);
    check_near(training.common_values(), on_one_device(settings, 4, world), world);
  }
}

TEST_CASE(
    "averages of each step, and a parameter rank without staleness, are training on all images") {
  const Communicator world = Communicator::world();
  for (const Synchronisation& sync : {Synchronisation{SyncMode::Local, 1},
                                      Synchronisation{SyncMode::ParameterRank, 0},
                                      Synchronisation{SyncMode::PostLocal, 5}}) {
    for (const bool adam : {false, true}) {
      if (adam && sync.mode == SyncMode::Local) {
        continue;  // means of squares are not those of the mean
      }
      const Settings settings{.adam = adam, .post_local_steps = 4};
      Training training(sync, settings, world);
      training.steps(4);
      check_near(training.common_values(), on_one_device(settings, 4, world), world);
    }
  }
}

TEST_CASE("the loss of a step is that of all replicas") {
  const Communicator world = Communicator::world();
  const double loss = Training({}, {}, world).step().loss;
  for (const Synchronisation& sync : kApart) {
    Training training(sync, {}, world);
    CHECK(training.step().loss == doctest::Approx(loss).epsilon(1e-5));
  }
}

TEST_CASE("replicas differ until they are averaged, and then hold the same bits") {
  const Communicator world = Communicator::world();
  for (const Compression& compression : kCompressions) {
    Training training(
        {SyncMode::Local, 3}, {.normalizes = false, .compression = compression}, world);
    training.steps(2);
    CHECK(replicas_are_alike(training, world) == (replicas_of(world) == 1));
    training.steps(1);
    CHECK(replicas_are_alike(training, world));
  }
}

TEST_CASE("a post-local run has the same parameters everywhere in its first part") {
  const Communicator world = Communicator::world();
  for (const Compression& compression : kCompressions) {
    Training training(
        {SyncMode::PostLocal, 2}, {.compression = compression, .post_local_steps = 3}, world);
    for (int step = 1; step <= 5; ++step) {
      training.steps(1);
      const bool alike = step <= 3 || step == 5 || replicas_of(world) == 1;
      CHECK(replicas_are_alike(training, world) == alike);
    }
  }
}

TEST_CASE("what compressed gradients leave out does not get into weights that are averaged") {
  const Communicator world = Communicator::world();
  for (const Compression& compression : kCompressions) {
    const Settings settings{
        .momentum = 0, .learning_rate = 0, .compression = compression, .post_local_steps = 2};
    Training training({SyncMode::PostLocal, 1}, settings, world);
    const std::vector<float> before = training.values();
    training.steps(4);
    CHECK(training.values() == before);
  }
}

TEST_CASE("replicas of a parameter rank hold the same bits after each step") {
  const Communicator world = Communicator::world();
  for (const Index staleness : {0, 2}) {
    for (const Compression& compression : kCompressions) {
      Training training({SyncMode::ParameterRank, staleness}, {.compression = compression}, world);
      for (int step = 0; step < 5; ++step) {
        training.steps(1);
        CHECK(replicas_are_alike(training, world));
      }
    }
  }
}

TEST_CASE("gradients of a parameter rank are of parameters that are just as stale as they may be") {
  const Communicator world = Communicator::world();
  if (replicas_of(world) == 1) {
    return;
  }
  constexpr Index kStaleness = 2;
  constexpr Index kSteps = 6;
  const Settings settings{.momentum = 0};
  // Without momentum an update is the rate times the gradient: what one step changes on one device.
  const Network network = classifier(false);
  const Communicator self = Communicator::self();
  const Index replicas = replicas_of(world);
  const Plan plan = make_plan(network, single_tile(network), replicas * kShare / 2);
  Trainer alone(network, plan, self, options(replicas, settings));
  DataLoader pictures(RandomPictures{}, plan, self);
  auto& parameters = alone.execution().parameters().all();
  const auto values = [&] {
    std::vector<float> all;
    for (const Parameter<float>& parameter : parameters) {
      all.insert(
          all.end(), parameter.values.data(), parameter.values.data() + parameter.values.size());
    }
    return all;
  };
  const auto assign = [&](const std::vector<float>& all) {
    const float* from = all.data();
    for (Parameter<float>& parameter : parameters) {
      std::copy_n(from, parameter.values.size(), parameter.values.data());
      from += parameter.values.size();
    }
  };
  std::vector<std::vector<float>> updated{values()};  // after each update
  for (Index step = 1; step <= kSteps; ++step) {
    const auto& stale =
        updated[static_cast<std::size_t>(std::max<Index>(step - 1 - kStaleness, 0))];
    assign(stale);
    alone.resume_at(step - 1);
    (void)alone.step(pictures);
    std::vector<float> next = updated.back();
    const std::vector<float> now = values();
    for (std::size_t i = 0; i < next.size(); ++i) {
      next[i] += now[i] - stale[i];
    }
    updated.push_back(std::move(next));
  }
  Training training({SyncMode::ParameterRank, kStaleness}, settings, world);
  training.steps(kSteps);
  check_near(training.common_values(), updated.back(), world);
  if (world.size() % 2 != 0) {  // of whole replicas: what they compute with
    CHECK(difference(training.values(), updated[kSteps - kStaleness]) < kRounding);
  }
}

TEST_CASE("replicas that gossip hold what their partner holds") {
  const Communicator world = Communicator::world();
  Training training({SyncMode::Gossip, 0}, {}, world);
  const int apart = world.size() / replicas_of(world);
  for (Index step = 1; step <= 4; ++step) {
    training.steps(1);
    const std::vector<float> mine = training.values();
    const auto all = world.gather_all(std::as_bytes(std::span(mine)));
    const int partner =
        engine::gossip_partner(5, step, replicas_of(world), world.rank() / apart) * apart +
        world.rank() % apart;
    CHECK(all[static_cast<std::size_t>(partner)] == all[static_cast<std::size_t>(world.rank())]);
  }
}

TEST_CASE("training has the same bits again, and whether or not somebody asks for what is common") {
  const Communicator world = Communicator::world();
  for (const auto& [sync, compression] : ties()) {
    const Settings settings{.normalizes = true, .compression = compression, .post_local_steps = 2};
    std::vector<std::vector<float>> results;
    for (const bool asks : {false, true, false}) {
      Training training(sync, settings, world);
      for (int step = 0; step < 5; ++step) {
        training.steps(1);
        if (asks) {
          (void)training.common_values();
        }
      }
      results.push_back(training.values());
    }
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
  }
}

TEST_CASE("what rank 0 reports ends all replicas that may be steps apart, on all of their ranks") {
  const Communicator world = Communicator::world();
  if (replicas_of(world) == 1) {
    return;
  }
  constexpr Index kStaleness = 2;
  for (const bool goes_on : {false, true}) {
    CAPTURE(goes_on);
    Training training({SyncMode::ParameterRank, kStaleness}, {}, world);
    training.steps(1);
    if (world.rank() == 0) {
      training.trainer().report("the disk is full");
    }
    const auto end = [&] {
      if (goes_on) {
        training.steps(kStaleness + 2);
      } else {
        const auto common = training.trainer().common_model();
      }
    };
    CHECK_THROWS_WITH_AS(end(), "the disk is full", engine::AgreedError);
  }
}

TEST_CASE("what replicas have in common is the same on all of them") {
  const Communicator world = Communicator::world();
  for (const Synchronisation& sync : kApart) {
    Training training(sync, {.normalizes = true}, world);
    training.steps(4);
    const std::vector<float> own = training.values();
    {
      const auto common = training.trainer().common_model();
      CHECK(replicas_are_alike(training, world));
    }
    CHECK(training.values() == own);
  }
}

TEST_CASE("replicas that are averaged less often, or by compressed messages, send less") {
  const Communicator world = Communicator::world();
  if (replicas_of(world) == 1) {
    return;
  }
  constexpr Index kSteps = 8;
  const auto sent = [&](const Synchronisation& sync, const Compression& compression) {
    Training training(sync, {.compression = compression}, world);
    training.steps(kSteps);
    {
      const auto common = training.trainer().common_model();  // nothing is under way
    }
    double sum = 0;
    for (const double of_rank :
         world.of_ranks(static_cast<double>(training.trainer().sent_bytes()))) {
      sum += of_rank;
    }
    return sum;
  };
  const double within = sent({SyncMode::Local, 1000}, Compression::Exact);  // of tiles, of the loss
  const double each_step = sent({SyncMode::Local, 1}, Compression::Exact) - within;
  CHECK(each_step > 0);
  CHECK(sent({SyncMode::Local, 4}, Compression::Exact) - within == doctest::Approx(each_step / 4));
  for (const SyncMode mode : {SyncMode::Local, SyncMode::ParameterRank}) {
    const Index steps = mode == SyncMode::Local ? 1 : 0;
    const double exact = sent({mode, steps}, Compression::Exact) - within;
    // An average takes a message from each replica to each other one.
    if (mode == SyncMode::ParameterRank || replicas_of(world) < 4) {
      CHECK(sent({mode, steps}, Compression::Half) - within < 0.9 * exact);
    }
    for (std::size_t i = 2; i < std::size(kCompressions); ++i) {
      CHECK(sent({mode, steps}, kCompressions[i]) - within < 0.9 * exact);
    }
  }
  for (const Compression& compression : kCompressions) {
    if (compression != Compression::Exact) {
      CHECK(sent({}, compression) < sent({}, Compression::Exact));
    }
  }
}

}  // namespace
