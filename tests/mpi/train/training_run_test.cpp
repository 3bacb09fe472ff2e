// When a training run tells its observers what.

#include "engine/train/training_run.h"

#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "engine/train/metrics/classification_metrics.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::AgreedError;
using engine::Communicator;
using engine::DataLoader;
using engine::TrainingObserver;
using partitioner::kImage;
using partitioner::Network;

constexpr partitioner::MapShape kPicture{1, 6, 6};
constexpr Index kBatch = 4;
constexpr Index kPictures = 12;  // three batches

Network run_classifier() {
  Network network;
  network.image = kPicture;
  add_layer(network, partitioner::Convolution{.filters = 4, .size = 3, .padding = 1}, {kImage});
  add_layer(network, partitioner::AvgPool{}, {0});
  add_layer(network, partitioner::Connected{.outputs = 2}, {1});
  add_layer(network, partitioner::Softmax{}, {2});
  return network;
}

engine::BatchSource pictures(engine::Split split) {
  engine::BytePictures data;
  data.shape = kPicture;
  for (Index i = 0; i < kPictures * kPicture.volume(); ++i) {
    data.pixels.push_back(static_cast<std::uint8_t>(i * 37 % 251));
  }
  for (Index i = 0; i < kPictures; ++i) {
    data.labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  data.class_names = engine::numbered_names(2);
  engine::BatchOptions options;
  options.rules.input = kPicture;
  options.rules.picture = kPicture;
  options.batch = kBatch;
  options.split = split;
  return {engine::Dataset(std::move(data), "made", 1), options, "net.cfg"};
}

// A run of some steps on all ranks, and what its first observer was told.
class Recorded {
 public:
  explicit Recorded(const engine::TrainingLength& length)
      : trainer_(network_, plan_, world_, options()),
        training_(pictures(engine::Split::Train), plan_, world_),
        testing_(pictures(engine::Split::Test), plan_, world_),
        run_(trainer_, training_, length) {
    run_.test_on(testing_, metric_);
    run_.add({.step = [this](Index step, const auto&) { add("step", step); },
              .checkpoint = [this](Index step) { add("checkpoint", step); },
              .evaluation =
                  [this](Index step, double epoch, const engine::EvaluationResult& result) {
                    CHECK(result.pictures == kPictures);
                    add(fmt::format("epoch {:.2f}", epoch), step);
                  },
              .end = [this](Index step) { add("end", step); },
              .failure = [this](Index step) { add("failure", step); }});
  }

  [[nodiscard]] engine::TrainingRun& run() { return run_; }
  [[nodiscard]] const std::vector<std::string>& events() const { return events_; }

 private:
  static engine::TrainerOptions options() {
    engine::TrainerOptions options;
    options.training.batch = kBatch;
    return options;
  }
  void add(const std::string& what, Index step) {
    events_.push_back(fmt::format("{}: {}", step, what));
  }

  Communicator world_ = Communicator::world();
  Network network_ = run_classifier();
  partitioner::Plan plan_ = make_plan(
      network_,
      tests::partition_of(network_, world_.size(), {{0, 3}}, {tests::images_cut(world_.size())}),
      kBatch);
  engine::Trainer trainer_;
  DataLoader training_;
  DataLoader testing_;
  engine::ClassificationMetrics metric_ = engine::class_metric(network_);
  engine::TrainingRun run_;
  std::vector<std::string> events_;
};

TEST_CASE(
    "epochs may go without a checkpoint, but not the last one, nor where an interval is given") {
  using Steps = std::vector<std::string>;
  const auto saved = [](Index checkpoint_steps) {
    Recorded recorded({.epoch_steps = 3, .last_step = 9, .checkpoint_steps = checkpoint_steps});
    int asked = 0;
    recorded.run().save_epochs_if([&asked] { return asked++ == 1; });
    recorded.run().run();
    Steps steps;
    for (const std::string& event : recorded.events()) {
      if (event.find("checkpoint") != std::string::npos) {
        steps.push_back(event);
      }
    }
    return steps;
  };
  CHECK(saved(0) == Steps{"6: checkpoint", "9: checkpoint"});
  CHECK(saved(3) == Steps{"3: checkpoint", "6: checkpoint", "9: checkpoint"});
}

TEST_CASE("epochs end where their pictures do, also inside a step") {
  const engine::TrainingLength length{
      .epoch_steps = 2, .last_step = 11, .pictures = 24, .images = 23};
  std::vector<Index> ends;
  for (Index step = 1; step <= length.last_step; ++step) {
    if (length.ends_epoch(step)) {
      ends.push_back(step);
    }
  }
  CHECK(ends == std::vector<Index>{2, 3, 4, 5, 6, 7, 8, 9, 10, 11});  // ten epochs
}

TEST_CASE("a test that is owed comes before the next step, also after the last one") {
  for (const Index last : {Index{5}, Index{3}}) {
    Recorded recorded({.epoch_steps = 3, .last_step = last});
    recorded.run().run_until(2);
    recorded.run().owe_test();
    recorded.run().run_until(3);
    CHECK(recorded.events()[2].ends_with("epoch 0.67"));
  }
}

TEST_CASE("a checkpoint that is owed is made where one is due, and nowhere else") {
  for (const Index first : {Index{2}, Index{3}}) {
    Recorded recorded({.epoch_steps = 3, .last_step = 5});
    recorded.run().run_until(first);
    const auto told = recorded.events().size();
    recorded.run().owe_checkpoint();
    recorded.run().run_until(first);
    CHECK(recorded.events().size() == told + (first == 3 ? 1 : 0));
  }
}

TEST_CASE("a run that had enough before takes no step, and is saved where it was not") {
  for (const Index saved : {Index{2}, Index{0}}) {
    Recorded recorded({.epoch_steps = 2, .last_step = 9, .checkpoint_steps = 100});
    recorded.run().run_until(2);
    recorded.run().last_saved(saved);
    recorded.run().has_enough();
    recorded.run().run();
    CHECK(recorded.events().size() == (saved == 2 ? 4 : 5));
    CHECK(recorded.events().back() == "2: end");
  }
}

TEST_CASE("a run saves at its period, tests after each epoch, and does both after its last step") {
  Recorded recorded({.epoch_steps = 3, .last_step = 5, .checkpoint_steps = 2});
  recorded.run().run();
  CHECK(recorded.events() == std::vector<std::string>{"1: step",
                                                      "2: step",
                                                      "2: checkpoint",
                                                      "3: step",
                                                      "3: epoch 1.00",
                                                      "4: step",
                                                      "4: checkpoint",
                                                      "5: step",
                                                      "5: checkpoint",
                                                      "5: epoch 1.67",
                                                      "5: end"});
}

TEST_CASE("without a period of its own a run saves once per epoch") {
  Recorded recorded({.epoch_steps = 2, .last_step = 2});
  recorded.run().run();
  CHECK(recorded.events() ==
        std::vector<std::string>{"1: step", "2: step", "2: checkpoint", "2: epoch 0.67", "2: end"});
}

TEST_CASE("a run that an observer has enough of ends after that test, saved") {
  Recorded recorded({.epoch_steps = 2, .last_step = 9, .checkpoint_steps = 3});
  int tests = 0;
  recorded.run().add({.enough = [&tests] { return ++tests == 2; }});
  recorded.run().add({.enough = [] { return false; }});
  recorded.run().run();
  CHECK(recorded.events() == std::vector<std::string>{"1: step",
                                                      "2: step",
                                                      "2: epoch 0.67",
                                                      "3: step",
                                                      "3: checkpoint",
                                                      "4: step",
                                                      "4: epoch 1.33",
                                                      "4: checkpoint",
                                                      "4: end"});
}

TEST_CASE("an observer's error ends a run, which tells the failure and throws the error") {
  Recorded recorded({.epoch_steps = 3, .last_step = 5});
  recorded.run().add({.step = [](Index step, const auto&) {
    if (step == 2) {
      throw AgreedError("the disk is full");
    }
  }});
  CHECK_THROWS_WITH_AS(recorded.run().run(), "the disk is full", AgreedError);
  CHECK(recorded.events() == std::vector<std::string>{"1: step", "2: step", "2: failure"});
}

TEST_CASE("what has diverged is no failure worth saving") {
  Recorded recorded({.epoch_steps = 3, .last_step = 5});
  recorded.run().add({.step = [](Index, const auto&) { throw engine::Diverged("loss is NaN"); }});
  CHECK_THROWS_AS(recorded.run().run(), engine::Diverged);
  CHECK(recorded.events() == std::vector<std::string>{"1: step"});
}

}  // namespace
