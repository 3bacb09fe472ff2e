// Training that goes on under another plan, on fewer ranks or others.

#include "engine/train/carried_state.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::CarriedState;
using engine::Communicator;
using engine::DataLoader;
using engine::Parameter;
using engine::RandomPictures;
using engine::Trainer;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;

constexpr Index kCarriedBatch = 4;

Network carried_classifier() {
  Network network;
  network.image = {3, 12, 10};
  add_layer(
      network,
      partitioner::Convolution{.filters = 8, .size = 3, .padding = 1, .batch_normalize = true},
      {kImage});
  add_layer(network, partitioner::Convolution{.filters = 20, .size = 3, .padding = 1}, {0});
  add_layer(network, partitioner::AvgPool{}, {1});
  add_layer(network, partitioner::Connected{.outputs = 4}, {2});
  add_layer(network, partitioner::Softmax{}, {3});
  return network;
}

engine::TrainerOptions carried_options(bool adam) {
  engine::TrainerOptions options;
  options.training.batch = kCarriedBatch;
  options.training.adam = adam;
  options.training.ema_decay = 0.99;
  options.seed = 5;
  return options;
}

// Of the first `tiles` ranks, or of the last ones, a tile each.
Partition tiled(const Network& network, int ranks, int tiles, bool last) {
  const Partition few = tests::partition_of(
      network, tiles, {{0, 1}, {2, 4}}, {tests::grid(tiles), tests::images_cut(tiles)});
  std::vector<int> devices;
  for (int i = 0; i < tiles; ++i) {
    devices.push_back(last ? ranks - tiles + i : i);
  }
  return on_ranks(few, devices, ranks);
}

// Values and states of an owner, whole, on rank 0.
class Run {
 public:
  Run(const Network& network, const Communicator& world, bool adam)
      : network_(network), world_(world), adam_(adam) {}

  // Goes on by another partition, on those of its ranks that have a tile, and rank 0.
  void change_to(const Partition& partition) {
    partitioner::Plan plan = make_plan(network_, partition, kCarriedBatch);
    const CarriedState state(plan_, trainer_.get());
    loader_.reset();
    trainer_.reset();
    begin(partition, std::move(plan));
    state.give(plan_, trainer_.get(), world_);
  }

  void begin(const Partition& partition, partitioner::Plan plan) {
    plan_ = std::move(plan);
    std::vector<int> ranks = busy_ranks(partition);
    if (ranks.front() != 0) {
      ranks.insert(ranks.begin(), 0);
    }
    takes_part_ = std::find(ranks.begin(), ranks.end(), world_.rank()) != ranks.end();
    members_ = world_.among(ranks);
    if (takes_part_) {
      trainer_ = std::make_unique<Trainer>(network_, plan_, members_, carried_options(adam_));
      loader_ = std::make_unique<DataLoader>(RandomPictures{3}, plan_, members_);
    }
  }

  double step() {
    double loss = 0;
    if (takes_part_) {
      loss = trainer_->step(*loader_).loss;
    }
    return loss;
  }

  // Of all parameters, whole, on rank 0.
  [[nodiscard]] std::vector<float> averages() { return averages_of(trainer_.get()); }
  [[nodiscard]] static std::vector<float> averages_of(Trainer* trainer) {
    std::vector<float> all;
    if (trainer != nullptr) {
      trainer->with_averages([&] {
        const auto& set = trainer->execution().parameters();
        for (const auto& parameter : set.all()) {
          const std::vector<float> whole = set.gather(parameter, parameter.values.data());
          all.insert(all.end(), whole.begin(), whole.end());
        }
      });
    }
    return all;
  }

  [[nodiscard]] Index steps_done() const { return takes_part_ ? trainer_->steps_done() : -1; }
  [[nodiscard]] bool takes_part() const { return takes_part_; }

 private:
  const Network& network_;
  const Communicator& world_;
  bool adam_;
  bool takes_part_ = false;
  partitioner::Plan plan_;
  Communicator members_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<DataLoader> loader_;
};

// Of all parameters of a layer on this rank, one after the other.
struct LearntHere {
  std::vector<float> values;
  std::vector<float> states;
};
LearntHere learnt_here(Trainer& trainer, bool first_layer) {
  LearntHere learnt;
  const auto& parameters = trainer.execution().parameters().all();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if ((parameters[i].plan->layer == 0) == first_layer) {
      const auto add = [](std::span<float> some, std::vector<float>& all) {
        all.insert(all.end(), some.begin(), some.end());
      };
      add(trainer.execution().parameters().all()[i].values.span(), learnt.values);
      add(trainer.optimizer().states()[i].first.span(), learnt.states);
      add(trainer.optimizer().states()[i].second.span(), learnt.states);
    }
  }
  return learnt;
}

TEST_CASE("layers that come to learn keep their values, and their optimizer state begins at 0") {
  const Communicator world = Communicator::world();
  const Network network = carried_classifier();
  Network frozen = network;
  freeze(frozen, 0);
  const Partition partition = tiled(network, world.size(), world.size(), false);
  for (const bool adam : {false, true}) {
    CAPTURE(adam);
    const partitioner::Plan before = make_plan(frozen, partition, kCarriedBatch);
    Trainer first(frozen, before, world, carried_options(adam));
    const LearntHere begun = learnt_here(first, true);
    DataLoader pictures(RandomPictures{3}, before, world);
    for (int step = 0; step < 3; ++step) {
      (void)first.step(pictures);
    }
    const partitioner::Plan now = make_plan(network, partition, kCarriedBatch);
    Trainer second(network, now, world, carried_options(adam));
    CarriedState(before, &first).give(now, &second, world);
    CHECK(second.steps_done() == 3);
    const LearntHere carried = learnt_here(second, true);
    CHECK(carried.values == begun.values);
    CHECK(std::count(carried.states.begin(), carried.states.end(), 0.0F) ==
          std::ssize(carried.states));
    second.with_averages([&] { CHECK(learnt_here(second, true).values == begun.values); });
    CHECK(learnt_here(second, false).values == learnt_here(first, false).values);
    CHECK(learnt_here(second, false).states == learnt_here(first, false).states);
    DataLoader more_pictures(RandomPictures{3}, now, world);
    (void)second.step(more_pictures);
    CHECK((carried.values.empty() || learnt_here(second, true).values != begun.values));
  }
}

TEST_CASE("training that goes from plan to plan does what one plan does, whoever rests") {
  const Communicator world = Communicator::world();
  const Network network = carried_classifier();
  constexpr int kSteps = 3;
  for (const bool adam : {false, true}) {
    CAPTURE(adam);
    std::vector<double> alone;
    std::vector<float> averages;
    {
      const partitioner::Plan plan = make_plan(network, single_tile(network), kCarriedBatch);
      const Communicator self = Communicator::self();
      Trainer trainer(network, plan, self, carried_options(adam));
      DataLoader loader(RandomPictures{3}, plan, self);
      for (int i = 0; i < 3 * kSteps; ++i) {
        alone.push_back(trainer.step(loader).loss);
      }
      averages = Run::averages_of(&trainer);
    }
    const int few = std::max(1, world.size() / 2);
    const Partition all = tiled(network, world.size(), std::min(world.size(), 4), false);
    Run run(network, world, adam);
    run.begin(all, make_plan(network, all, kCarriedBatch));
    std::size_t done = 0;
    const auto go_on = [&] {
      for (int i = 0; i < kSteps; ++i, ++done) {
        const double loss = run.step();
        if (run.takes_part()) {
          CHECK(loss == doctest::Approx(alone[done]).epsilon(1e-4));
        }
      }
    };
    go_on();
    run.change_to(tiled(network, world.size(), std::min(few, 4), true));
    if (run.takes_part()) {
      CHECK(run.steps_done() == kSteps);
    }
    go_on();
    run.change_to(tiled(network, world.size(), 1, false));
    go_on();
    const std::vector<float> carried = run.averages();
    for (std::size_t i = 0; i < carried.size(); ++i) {
      CHECK(carried[i] == doctest::Approx(averages[i]).epsilon(1e-3));
    }
  }
}

TEST_CASE("what is carried to the same plan is the same to the bit") {
  const Communicator world = Communicator::world();
  const Network network = carried_classifier();
  const Partition all = tiled(network, world.size(), std::min(world.size(), 4), false);
  Run once(network, world, true);
  Run twice(network, world, true);
  once.begin(all, make_plan(network, all, kCarriedBatch));
  twice.begin(all, make_plan(network, all, kCarriedBatch));
  for (int i = 0; i < 4; ++i) {
    if (i == 2) {
      twice.change_to(all);
    }
    const double expected = once.step();
    CHECK(twice.step() == expected);
  }
}

TEST_CASE("those who take part gather without those who rest") {
  const Communicator world = Communicator::world();
  std::vector<int> even;
  for (int rank = 0; rank < world.size(); rank += 2) {
    even.push_back(rank);
  }
  const Communicator some = world.among(even);
  if (world.rank() % 2 == 0) {
    const std::vector<int> values = some.of_ranks(world.rank() + 1);
    for (int rank = 0; rank < world.size(); ++rank) {
      CHECK(values[static_cast<std::size_t>(rank)] == (rank % 2 == 0 ? rank + 1 : 0));
    }
    CHECK(some.share(world.rank() + 7) == 7);
    CHECK(some.agree(std::nullopt) == std::nullopt);
    CHECK(some.agree(world.rank() == even.back() ? std::optional<std::string>("it")
                                                 : std::nullopt) == "it");
  }
  const Communicator waits = world.rank() % 2 == 0 ? world : world.resting();
  CHECK(waits.share(world.rank() + 3) == 3);
}

}  // namespace
