// Whole training runs as library calls.

#include "engine/session/training_session.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/comm/agreement.h"
#include "engine/files/safetensors.h"
#include "engine/train/checkpoints/intact_checkpoint.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::TrainingRequest;
using engine::TrainingResult;
using engine::TrainingSession;
using engine::TrainingSessionObserver;

constexpr Index kSide = 12;
constexpr Index kPictures = 24;  // for training; half as many for testing

// A folder that all ranks know.
class FolderOfRanks {
 public:
  explicit FolderOfRanks(const Communicator& world) : world_(world) {
    std::optional<std::string> path;
    if (world.rank() == 0) {
      path = own_.emplace().path().string();
    }
    path_ = world.agree(path).value();
  }
  ~FolderOfRanks() { world_.barrier(); }
  FolderOfRanks(const FolderOfRanks&) = delete;
  FolderOfRanks& operator=(const FolderOfRanks&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  const Communicator& world_;
  std::optional<tests::TemporaryFolder> own_;
  std::string path_;
};

void write_idx(const std::string& path, const std::vector<Index>& sizes, Index seed) {
  std::ofstream file(path, std::ios::binary);
  const std::string begin{0, 0, 8, static_cast<char>(sizes.size())};
  file << begin;
  Index count = 1;
  for (const Index size : sizes) {
    file << std::string{0, 0, 0, static_cast<char>(size)};
    count *= size;
  }
  for (Index i = 0; i < count; ++i) {
    const bool labels = sizes.size() == 1;
    file << static_cast<char>(labels ? i % 2 : (i * 37 + seed) % 251);
  }
}

constexpr const char* kModel = R"([net]
batch=8
subdivisions=1
height=12
width=12
channels=1
learning_rate=0.01
max_batches=100
[convolutional]
filters=4
size=3
stride=1
pad=1
activation=leaky
[maxpool]
size=2
stride=2
[connected]
output=2
activation=linear
[softmax]
)";

// A model file, a data set and a request that trains on them.
class Fixture {
 public:
  Fixture() {
    if (world.rank() == 0) {
      std::ofstream(folder / "net.cfg") << kModel;
      std::filesystem::create_directory(folder / "data");
      write_idx(folder / "data/train-images-idx3-ubyte", {kPictures, kSide, kSide}, 0);
      write_idx(folder / "data/train-labels-idx1-ubyte", {kPictures}, 0);
      write_idx(folder / "data/t10k-images-idx3-ubyte", {kPictures / 2, kSide, kSide}, 5);
      write_idx(folder / "data/t10k-labels-idx1-ubyte", {kPictures / 2}, 0);
    }
    world.barrier();
    request.model = folder / "net.cfg";
    request.data = folder / "data";
    request.run = folder / "run";
    request.steps = 6;
    request.seed = 7;
    request.monitor = false;
  }

  // The model file with batch normalisation.
  void normalise() const { add_to_convolution("batch_normalize=1\n"); }

  void add_to_convolution(const std::string& lines, const char* file = "net.cfg") const {
    if (world.rank() == 0) {
      std::string text = kModel;
      const std::string section = "[convolutional]\n";
      text.insert(text.find(section) + section.size(), lines);
      std::ofstream(folder / file) << text;
    }
    world.barrier();
  }

  TrainingResult train(const TrainingSessionObserver& observer = {}) const {
    return TrainingSession(request, world, observer, environment).run();
  }

  Communicator world = Communicator::world();
  FolderOfRanks folder{world};
  TrainingRequest request;
  engine::RunEnvironment environment;
};

// What rank 0 hears.
struct Heard {
  std::map<Index, double> losses;
  std::string lines;
  std::vector<std::string> order;
  std::vector<Index> checkpoints;

  TrainingSessionObserver observer() {
    return {
        .messages = {.lines = [this](const std::string& text) { lines += text; }},
        .steps_begin =
            [this](const engine::StepsAhead& ahead) {
              order.push_back("begin " + std::to_string(ahead.done) + " of " +
                              std::to_string(ahead.last) + ", " + std::to_string(ahead.images));
            },
        .steps = {.step = [this](Index step,
                                 const engine::StepResult& result) { losses[step] = result.loss; },
                  .evaluation =
                      [this](Index step, double, const engine::EvaluationResult&) {
                        order.push_back("test " + std::to_string(step));
                      }},
        .steps_end = [this] { order.emplace_back("end"); },
        .checkpoint = [this](const std::string&, Index step) { checkpoints.push_back(step); }};
  }
};

}  // namespace

TEST_CASE("a session trains, tells rank 0 of its steps and all ranks of checkpoints") {
  const Fixture fixture;
  Heard heard;
  const TrainingResult result = fixture.train(heard.observer());
  CHECK(result.step == 6);
  CHECK(heard.checkpoints == std::vector<Index>{3, 6});
  if (fixture.world.rank() == 0) {
    CHECK(heard.order == std::vector<std::string>{"begin 0 of 6, 8", "test 3", "test 6", "end"});
    CHECK(heard.losses.size() == 6);
    CHECK(heard.lines.find("36 pictures") != std::string::npos);
    CHECK(result.best.has_value());
    CHECK(std::filesystem::exists(fixture.folder / "run/checkpoint.safetensors"));
  } else {
    CHECK(heard.order.empty());
    CHECK(heard.losses.empty());
    CHECK(heard.lines.empty());
  }
}

TEST_CASE("steps go on while a checkpoint is put on the disk, and the end waits for it") {
  constexpr std::chrono::seconds kLongEnough{60};
  Fixture fixture;
  fixture.request.checkpoint_every = 2;
  fixture.request.evaluate = false;
  std::mutex mutex;
  std::condition_variable changed;
  Index steps = 0;
  std::vector<Index> checkpoints;
  TrainingSessionObserver observer;
  observer.steps.step = [&](Index step, const engine::StepResult&) {
    const std::lock_guard lock(mutex);
    steps = step;
    changed.notify_all();
  };
  const bool root = fixture.world.rank() == 0;
  observer.checkpoint = [&](const std::string& file, Index step) {
    std::unique_lock lock(mutex);
    checkpoints.push_back(step);
    if (root) {
      CHECK(engine::expect_intact_checkpoint(file) == step);
      // A step comes after that of the checkpoint, but for the last, while this does not return.
      CHECK(changed.wait_for(
          lock, kLongEnough, [&] { return steps >= std::min<Index>(step + 1, 6); }));
    }
  };
  fixture.train(observer);
  CHECK(checkpoints == std::vector<Index>{2, 4, 6});
  if (root) {
    CHECK(engine::expect_intact_checkpoint(fixture.folder /
                                           "run/checkpoint.previous.safetensors") == 4);
  }
}

TEST_CASE("what goes wrong while a checkpoint is put on the disk ends the run on all ranks") {
  Fixture fixture;
  fixture.request.checkpoint_every = 2;
  fixture.request.evaluate = false;
  fixture.request.steps = 50;
  Heard heard;
  TrainingSessionObserver observer = heard.observer();
  // The second checkpoint finds a folder where the first is to be kept, once all of it is written.
  observer.steps.step = [&](Index step, const engine::StepResult&) {
    heard.losses[step] = 0;
    if (step == 1) {
      std::filesystem::create_directory(fixture.folder / "run/checkpoint.previous.safetensors");
    }
  };
  std::string problem;
  try {
    fixture.train(observer);
  } catch (const engine::AgreedError& error) {
    problem = error.what();
  }
  CHECK(problem.find("checkpoint.safetensors: cannot be replaced") != std::string::npos);
  CHECK(heard.checkpoints == std::vector<Index>{2});
  if (fixture.world.rank() == 0) {
    CHECK(heard.losses.size() <= 6);  // the next checkpoint at the latest
    CHECK(engine::expect_intact_checkpoint(fixture.folder / "run/checkpoint.safetensors") == 2);
  }
}

TEST_CASE("a session that resumes goes on as the first would have") {
  Fixture fixture;
  Heard whole;
  fixture.train(whole.observer());
  fixture.request.run = fixture.folder / "parts";
  fixture.request.steps = 4;
  Heard first;
  fixture.train(first.observer());
  fixture.request.steps = 6;
  fixture.request.seed.reset();
  fixture.request.resume = fixture.folder / "parts/checkpoint.safetensors";
  Heard second;
  const TrainingResult result = fixture.train(second.observer());
  CHECK(result.step == 6);
  CHECK(second.checkpoints.front() == 4);  // the one that it goes on from
  first.losses.insert(second.losses.begin(), second.losses.end());
  CHECK(first.losses == whole.losses);
}

TEST_CASE("a session that was stopped before the test of its last step makes it when resumed") {
  Fixture fixture;
  fixture.request.evaluate = false;  // as if a signal had come before the test
  fixture.train();
  fixture.request.evaluate = true;
  fixture.request.resume = fixture.folder / "run/checkpoint.safetensors";
  Heard heard;
  const TrainingResult result = fixture.train(heard.observer());
  CHECK(result.step == 6);
  if (fixture.world.rank() == 0) {
    CHECK(heard.order == std::vector<std::string>{"begin 6 of 6, 8", "test 6", "end"});
    CHECK(result.best.has_value());
  }
  CHECK_THROWS_AS(fixture.train(), engine::AgreedError);  // now nothing is left to do
}

TEST_CASE("a resumed session keeps to the images of a step, and refuses others") {
  Fixture fixture;
  fixture.request.batch = 6;
  fixture.request.steps = 4;
  fixture.train();
  fixture.request.resume = fixture.folder / "run/checkpoint.safetensors";
  fixture.request.steps = 8;
  fixture.request.batch = 12;
  CHECK_THROWS_AS(fixture.train(), engine::AgreedError);
  fixture.request.batch = 0;  // the model file says 8
  Heard heard;
  fixture.train(heard.observer());
  if (fixture.world.rank() == 0) {
    CHECK(heard.order.front() == "begin 4 of 8, 6");
  }
}

TEST_CASE("a resumed session says what it does otherwise, once, and takes over what is not asked") {
  Fixture fixture;
  fixture.normalise();
  fixture.request.batch_norm = engine::BatchNormMode::Frozen;
  fixture.train();
  fixture.request.batch_norm.reset();
  fixture.request.resume = fixture.folder / "run/checkpoint.safetensors";
  fixture.request.steps = 9;
  std::vector<std::string> warnings;
  TrainingSessionObserver observer;
  observer.messages.warning = [&](const std::string& text) { warnings.push_back(text); };
  fixture.train(observer);
  CHECK(warnings.empty());
  fixture.request.batch_norm = engine::BatchNormMode::Sync;
  fixture.request.steps = 12;
  fixture.train(observer);
  CHECK(warnings.size() == (fixture.world.rank() == 0 ? 1 : 0));
}

TEST_CASE("losses of replicas that run ahead are those of a run that was not stopped") {
  Fixture fixture;
  if (fixture.world.size() % 2 != 0) {
    return;
  }
  fixture.request.partition.cut.replicas = 2;
  fixture.request.partition.cut.sync =
      partitioner::Synchronisation{partitioner::SyncMode::ParameterRank, 2};
  fixture.request.evaluate = false;
  fixture.request.checkpoint_every = 4;  // where all wait for each other
  fixture.request.steps = 8;
  Heard whole;
  fixture.train(whole.observer());
  fixture.request.run = fixture.folder / "parts";
  fixture.request.steps = 4;
  Heard parts;
  fixture.train(parts.observer());
  fixture.request.steps = 8;
  fixture.request.resume = fixture.folder / "parts/checkpoint.safetensors";
  Heard rest;
  fixture.train(rest.observer());
  parts.losses.insert(rest.losses.begin(), rest.losses.end());
  CHECK(parts.losses == whole.losses);

  // Steps of more passes begin with the same losses: those of steps before.
  fixture.request.run = fixture.folder / "passes";
  fixture.request.subdivisions = 4;
  fixture.request.resume = fixture.folder / "four/checkpoint.safetensors";
  TrainingRequest four = fixture.request;
  four.run = fixture.folder / "four";
  four.resume.clear();
  four.steps = 4;
  four.subdivisions = 1;
  TrainingSession(four, fixture.world).run();
  Heard more;
  fixture.train(more.observer());
  for (const Index step : {5, 6}) {
    CHECK(more.losses[step] == whole.losses[step]);
  }
}

TEST_CASE("a session refuses on all ranks what cannot be trained") {
  Fixture fixture;
  fixture.request.rebalance_window_s = 10;  // needs a search
  CHECK_THROWS_AS(fixture.train(), engine::AgreedError);
  fixture.request.rebalance_window_s.reset();
  fixture.request.data = fixture.folder / "none";
  CHECK_THROWS_AS(fixture.train(), engine::AgreedError);
  fixture.request.data = fixture.folder / "data";
  fixture.request.partition.cut.grid = {5, 5};  // more tiles than ranks
  CHECK_THROWS_AS(fixture.train(), engine::AgreedError);
  fixture.request.partition.cut.grid.reset();
  fixture.request.model = fixture.folder / "none.cfg";
  CHECK_THROWS_AS(fixture.train(), engine::AgreedError);
}

TEST_CASE(
    "a machine that its firmware slows down is an event of the run, once whatever its ranks") {
  Fixture fixture;
  fixture.request.monitor = true;
  fixture.environment.machine_root = fixture.folder / "machine";
  const std::filesystem::path firmware =
      fixture.environment.machine_root / "sys/devices/platform/soc/soc:firmware";
  if (fixture.world.rank() == 0) {
    std::filesystem::create_directories(firmware);
    std::ofstream(firmware / "get_throttled") << "5\n";
  }
  fixture.world.barrier();
  fixture.train();
  if (fixture.world.rank() == 0) {
    std::vector<nlohmann::json> told;
    std::ifstream events(fixture.folder / "run/events.jsonl");
    for (std::string line; std::getline(events, line);) {
      if (const auto event = nlohmann::json::parse(line); event["kind"] == "throttling") {
        told.push_back(event);
      }
    }
    CHECK(told.size() == 1);
    for (const auto& event : told) {
      const std::string host = event["device"];
      CHECK(event["text"] == host + " is slowed down: low voltage, throttled");
    }
  }
}

TEST_CASE("an error of an observer ends the steps, and they are said to end") {
  const Fixture fixture;
  Heard heard;
  TrainingSessionObserver observer = heard.observer();
  observer.checkpoint = [](const std::string&, Index) { throw engine::AgreedError("enough"); };
  CHECK_THROWS_WITH_AS(fixture.train(observer), "enough", engine::AgreedError);
  if (fixture.world.rank() == 0) {
    CHECK(heard.order.back() == "end");
  }
}

namespace {

// What is learnt, by name: all tensors of a checkpoint.
std::map<std::string, std::vector<float>> tensors_in(const std::string& file) {
  const engine::SafetensorsReader reader(file);
  std::map<std::string, std::vector<float>> tensors;
  for (const engine::StoredTensor& tensor : reader.tensors()) {
    tensors[tensor.name] = reader.read_all<float>(tensor.name);
  }
  return tensors;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> events_of_kind(const std::string& run, const std::string& kind) {
  std::vector<std::string> texts;
  std::ifstream events(run + "/events.jsonl");
  for (std::string line; std::getline(events, line);) {
    if (const auto event = nlohmann::json::parse(line); event["kind"] == kind) {
      texts.push_back(event["text"]);
    }
  }
  return texts;
}

constexpr const char* kFrozenFor3 = "batch_normalize=1\nstopbackward=3\n";

}  // namespace

TEST_CASE("up to step N layers with stopbackward=N are frozen as with --freeze, then they learn") {
  Fixture fixture;
  fixture.add_to_convolution(kFrozenFor3);
  fixture.add_to_convolution("batch_normalize=1\n", "plain.cfg");
  fixture.request.evaluate = false;
  Heard whole;
  std::vector<std::string> warnings;
  TrainingSessionObserver observer = whole.observer();
  observer.messages.warning = [&](const std::string& text) { warnings.push_back(text); };
  fixture.train(observer);
  const auto trained_to_step_3 = [&](const char* run, const char* model, const char* freeze) {
    TrainingRequest request = fixture.request;
    request.run = fixture.folder / run;
    request.model = fixture.folder / model;
    request.freeze = freeze;
    request.steps = 3;
    TrainingSession(request, fixture.world).run();
  };
  trained_to_step_3("three", "net.cfg", "");
  trained_to_step_3("frozen", "plain.cfg", "0");
  trained_to_step_3("none", "net.cfg", "none");
  trained_to_step_3("plain", "plain.cfg", "");
  if (fixture.world.rank() != 0) {
    CHECK(warnings.empty());
    return;
  }
  CHECK(warnings.size() == 1);
  CHECK(warnings.at(0).find("layer 0 frozen in the first 3 steps") != std::string::npos);
  CHECK(events_of_kind(fixture.folder / "run", "unfreeze") ==
        std::vector<std::string>{"learning from step 4 on, too: layer 0"});
  CHECK(events_of_kind(fixture.folder / "three", "unfreeze").empty());
  const auto learnt = [&](const std::string& run) {
    return tensors_in(fixture.folder / (run + "/checkpoint.safetensors"));
  };
  const auto at_first = learnt("three");
  const auto then = learnt("run");
  CHECK(at_first == learnt("frozen"));
  CHECK(learnt("none") == learnt("plain"));
  CHECK(at_first.count("optimizer.layers.0.weight.first") == 0);
  CHECK(then.count("optimizer.layers.0.weight.first") == 1);
  for (const auto& [name, values] : at_first) {
    CAPTURE(name);
    CHECK(values != then.at(name));
  }
  Heard alone;
  fixture.request.run = fixture.folder / "alone";
  TrainingSession(fixture.request, Communicator::self(), alone.observer()).run();
  for (const auto& [step, loss] : alone.losses) {
    CHECK(loss == doctest::Approx(whole.losses.at(step)).epsilon(1e-5));
  }
}

TEST_CASE("before, at and after the step in which more layers learn a run goes on bit for bit") {
  Fixture fixture;
  fixture.add_to_convolution(kFrozenFor3);
  fixture.request.checkpoint_every = 100;  // and at the end
  fixture.request.evaluate = false;
  fixture.environment.state_folder = fixture.folder / "state";
  if (fixture.world.rank() == 0) {
    std::filesystem::create_directory(fixture.environment.state_folder);
  }
  fixture.world.barrier();
  Heard whole;
  fixture.train(whole.observer());
  const auto goes_on_as_whole = [&](const Heard& first) {
    Heard second;
    fixture.request.steps = 6;
    fixture.train(second.observer());
    std::map<Index, double> losses = first.losses;
    losses.insert(second.losses.begin(), second.losses.end());
    CHECK(losses == whole.losses);
    CHECK(second.losses.size() + first.losses.size() == whole.losses.size());
    if (fixture.world.rank() == 0) {
      CHECK(bytes_of(fixture.request.run + "/checkpoint.safetensors") ==
            bytes_of(fixture.folder / "run/checkpoint.safetensors"));
    }
  };
  for (const Index steps : {2, 3, 4}) {
    CAPTURE(steps);
    fixture.request.run = fixture.folder / ("parts" + std::to_string(steps));
    fixture.request.steps = steps;
    fixture.request.resume.clear();
    fixture.environment.started_again = false;
    Heard first;
    fixture.train(first.observer());
    fixture.request.resume = fixture.request.run + "/checkpoint.safetensors";
    goes_on_as_whole(first);
  }
  // Where no checkpoint is left, what is kept in memory of the last step is enough.
  for (const Index steps : {2, 3, 4}) {
    CAPTURE(steps);
    fixture.request.run = fixture.folder / ("kept" + std::to_string(steps));
    fixture.request.resume.clear();
    fixture.environment.started_again = false;
    Heard first;
    TrainingSessionObserver observer = first.observer();
    observer.step_done = [&](Index step, Index /*last*/) {
      if (step == steps) {
        throw engine::AgreedError("enough");
      }
    };
    CHECK_THROWS_WITH_AS(fixture.train(observer), "enough", engine::AgreedError);
    if (fixture.world.rank() == 0) {
      std::filesystem::remove(fixture.request.run + "/checkpoint.safetensors");
    }
    fixture.environment.started_again = true;
    goes_on_as_whole(first);
  }
}
