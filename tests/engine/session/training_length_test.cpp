// How long a request makes training, and what is said of its learning rate.

#include "engine/session/training_length.h"

#include <string>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/comm/agreement.h"
#include "partitioner/base/errors.h"
#include "partitioner/search/partition_request.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::TrainingRequest;

partitioner::ModelFile model_with(Index batch, Index subdivisions, Index max_batches) {
  partitioner::ModelFile model;
  model.training.batch = batch;
  model.training.subdivisions = subdivisions;
  model.training.max_batches = max_batches;
  return model;
}

// What warn_of_zero_rate() says of all steps.
std::vector<std::string> rate_warnings(const partitioner::TrainingOptions& training, Index steps) {
  std::vector<std::string> warnings;
  const engine::SessionObserver observer{
      .warning = [&warnings](const std::string& text) { warnings.push_back(text); }};
  warn_of_zero_rate(
      TrainingRequest{.model = "net.cfg"}, training, 0, steps, engine::Communicator(), observer);
  return warnings;
}

// What warn_of_early_end() says.
std::string early_end(const partitioner::TrainingOptions& training,
                      Index steps,
                      const TrainingRequest& request = {}) {
  std::string said;
  const engine::SessionObserver observer{
      .warning = [&said](const std::string& text) { said += text; }};
  warn_of_early_end(request, training, steps, engine::Communicator(), observer);
  return said;
}

}  // namespace

TEST_CASE("a statistic of a single value is warned of where a replica or a tile takes it alone") {
  using tests::convolution;
  const partitioner::Network network = tests::chain({1, 2, 2},
                                                    {tests::normalized(convolution(2, 3)),
                                                     partitioner::MaxPool{2, 2},
                                                     tests::normalized(convolution(3, 1))});
  const auto warnings = [&](const engine::PartitionRequest& request,
                            int ranks,
                            Index images,
                            engine::BatchNormMode mode = engine::BatchNormMode::Sync) {
    std::string all;
    const engine::SessionObserver observer{
        .warning = [&all](const std::string& text) { all += text; }};
    const auto partition = requested_partition(network, request, ranks, images);
    warn_of_single_values(TrainingRequest{.model = "net.cfg"},
                          network,
                          make_plan(network, partition, images),
                          mode,
                          images,
                          engine::Communicator(),
                          observer);
    return all;
  };
  CHECK(tests::has(warnings({}, 1, 1), "layer 2"));
  CHECK(tests::has(warnings({}, 1, 1), "give --batch 2 or more"));
  CHECK(warnings({}, 1, 2).empty());
  const engine::PartitionRequest tied{.cut = {.replicas = 2}};
  const engine::PartitionRequest independent{
      .cut = {.replicas = 2, .sync = partitioner::parse_synchronisation("local:4")}};
  CHECK(warnings(tied, 2, 2).empty());
  CHECK(tests::has(warnings(independent, 2, 2), "give --batch 4 or more"));
  CHECK(warnings(independent, 2, 4).empty());
  const engine::PartitionRequest tiles{.cut = {.grid = std::pair<Index, Index>{2, 2}}};
  CHECK(warnings(tiles, 4, 2).empty());
  CHECK(tests::has(warnings(engine::PartitionRequest{.cut = {.data_parallel_from = 0}},
                            2,
                            2,
                            engine::BatchNormMode::PerTile),
                   "leave out --batch-norm tile"));
}

TEST_CASE("a batch of the request is one pass unless it says otherwise") {
  const auto training = training_options(TrainingRequest{.batch = 12}, model_with(64, 16, 100));
  CHECK(training.batch == 12);
  CHECK(training.subdivisions == 1);
  CHECK(training_options(TrainingRequest{.batch = 12, .subdivisions = 3}, model_with(64, 16, 100))
            .subdivisions == 3);
}

TEST_CASE("a run that goes on keeps the batch and the passes of its checkpoint") {
  engine::TrainingRecord before;
  before.images = 12;
  before.subdivisions = 3;
  const auto training = training_options(TrainingRequest{}, model_with(64, 16, 100), before);
  CHECK(training.batch == 12);
  CHECK(training.subdivisions == 3);
  CHECK(training_options(TrainingRequest{.subdivisions = 2}, model_with(64, 16, 100), before)
            .subdivisions == 2);
}

TEST_CASE("a batch that cannot be divided is refused by the name of the model") {
  const TrainingRequest request{.model = "net.cfg", .batch = 10, .subdivisions = 3};
  const std::string refusal =
      tests::input_error_of([&] { (void)training_options(request, model_with(64, 16, 100)); });
  CHECK(tests::has(refusal, "net.cfg"));
  CHECK(tests::has(refusal, "10 images cannot be divided into 3"));
}

TEST_CASE("epochs become steps, the last of which may be part of a batch") {
  partitioner::TrainingOptions training = model_with(8, 1, 0).training;
  const auto length = training_length(TrainingRequest{.epochs = 3}, 20, training);
  CHECK(length.epoch_steps == 3);    // 20 pictures in batches of 8
  CHECK(length.last_step == 8);      // 60 pictures
  CHECK(training.max_batches == 8);  // the schedule lasts as long
}

TEST_CASE("the request's steps come before the model's, which remain the schedule") {
  partitioner::TrainingOptions training = model_with(8, 1, 100).training;
  CHECK(training_length(TrainingRequest{.steps = 30}, 80, training).last_step == 30);
  CHECK(training.max_batches == 100);
  CHECK(training_length(TrainingRequest{}, 80, training).last_step == 100);
}

TEST_CASE("training of no length is refused") {
  partitioner::TrainingOptions training = model_with(8, 1, 0).training;
  CHECK_THROWS_AS((void)training_length(TrainingRequest{}, 80, training), engine::AgreedError);
}

TEST_CASE("steps after the end of a schedule are warned of, its last step is not") {
  partitioner::TrainingOptions training = model_with(8, 1, 100).training;
  training.learning_rate = 0.1;
  training.policy = partitioner::RatePolicy::Poly;
  CHECK(rate_warnings(training, 100).empty());
  const auto warnings = rate_warnings(training, 150);
  CHECK(warnings.size() == 1);
  CHECK(tests::has(warnings.at(0), "from step 100 to the last, 150"));
  CHECK(tests::has(warnings.at(0), "--schedule-steps 150"));
}

TEST_CASE("a first step without a rate is no fault, nor is an end that YOLOX's schedule has") {
  partitioner::TrainingOptions training = model_with(8, 1, 100).training;
  training.policy = partitioner::RatePolicy::Yolox;
  training.learning_rate = 0.1;
  training.warm_up_epochs = 2;
  training.flat_epochs = 3;
  training.epoch_pictures = 80;
  CHECK(learning_rate(training, 1) == 0);
  CHECK(rate_warnings(training, 1).empty());
  CHECK(rate_warnings(training, 100).empty());
  CHECK(early_end(training, 100).empty());
  CHECK(tests::has(early_end(training, 20), "warmup_epochs=2"));
  training.flat_epochs = 8;
  CHECK(tests::has(early_end(training, 100), "flat_epochs=8"));
  training.flat_epochs = 3;
  training.no_mosaic_epochs = 9;
  CHECK(early_end(training, 100).empty());
  training.no_mosaic_epochs = 10;
  CHECK(
      tests::has(early_end(training, 100), "no_mosaic_epochs=10: these are all of the 100 steps"));
}

TEST_CASE("training that ends in its warm-up, or before its rate has fallen, is warned of") {
  partitioner::TrainingOptions training = model_with(8, 1, 100).training;
  CHECK(early_end(training, 1).empty());
  training.burn_in = 40;
  CHECK(tests::has(early_end(training, 20), "burn_in=40"));
  CHECK(early_end(training, 41).empty());
  training.policy = partitioner::RatePolicy::Steps;
  training.steps = {60, 80};
  training.scales = {0.1, 0.1};
  CHECK(tests::has(early_end(training, 20), "burn_in=40"));
  CHECK(tests::has(early_end(training, 50), "steps=60: training ends at step 50, before 2 of 2"));
  CHECK(tests::has(early_end(training, 79), "steps=80: training ends at step 79, before 1 of 2"));
  CHECK(early_end(training, 80).empty());
  CHECK(early_end(training, 20, {.schedule_steps = 100}).empty());  // more is to come
  training.policy = partitioner::RatePolicy::Step;
  training.step = 50;
  CHECK(tests::has(early_end(training, 45), "step=50"));
  CHECK(early_end(training, 50).empty());
}
