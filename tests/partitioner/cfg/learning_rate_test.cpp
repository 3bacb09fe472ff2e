#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include <doctest/doctest.h>

#include "partitioner/cfg/model_file.h"

namespace tessera::partitioner {

namespace {

// Darknet computes rates in single precision.
constexpr double kSinglePrecision = 1e-5;

TrainingOptions training_of(const std::string& keys) {
  std::string text = "[net]\nheight=4\nwidth=4\nchannels=1\nlearning_rate=0.1\nmax_batches=400\n";
  std::istringstream words(keys);
  for (std::string word; words >> word;) {
    text += word + '\n';
  }
  return parse_model(text + "[avgpool]\n", "rates").training;
}

}  // namespace

TEST_CASE("every policy gives the rates that Darknet gives") {
  std::ifstream file(TESSERA_SOURCE_DIR "/tests/golden/darknet_rates.txt");
  std::string line;
  std::getline(file, line);  // what the columns are
  TrainingOptions training;
  int compared = 0;
  while (std::getline(file, line)) {
    if (line.rfind("policy=", 0) == 0) {
      training = training_of(line);
      CAPTURE(line);
      continue;
    }
    std::istringstream numbers(line);
    Index step = 0;
    double rate = 0;
    numbers >> step >> rate;
    CAPTURE(line);
    CHECK(learning_rate(training, step) == doctest::Approx(rate).epsilon(kSinglePrecision));
    ++compared;
  }
  CHECK(compared == 9 * 24);
}

// Numbers of YOLOX's own schedule (yolox/utils/lr_scheduler.py, Megvii, yoloxwarmcos).
TEST_CASE("the yolox rate is YOLOX's, whatever its epochs are counted in") {
  struct Rate {
    Index done;
    double rate;
  };
  const auto check = [](TrainingOptions training, const std::vector<Rate>& rates) {
    for (const Rate& each : rates) {
      CAPTURE(each.done);
      CHECK(learning_rate(training, each.done + 1) == doctest::Approx(each.rate).epsilon(1e-12));
    }
  };
  TrainingOptions training =
      training_of("policy=yolox learning_rate=0.0025 warmup_epochs=5 flat_epochs=5 batch=8");
  training.learning_rate = 0.0025;
  training.epoch_pictures = 800;
  training.max_batches = 3000;
  const std::vector<Rate> rates{{0, 0},
                                {1, 1e-8},
                                {2, 4e-8},
                                {250, 0.000625},
                                {499, 0.00249001},
                                {500, 0.0025},
                                {501, 0.002499998534980898},
                                {1500, 0.0013125},
                                {2499, 0.00012500146501910207},
                                {2500, 0.000125},
                                {2999, 0.000125}};
  check(training, rates);
  training.warm_up_epochs = 0;
  training.burn_in = 500;
  check(training, rates);
  training.epoch_pictures = 798;  // a step that has pictures of two epochs counts for both
  check(training, {{500, 0.0025}, {2501, 0.000125}});
  CHECK(learning_rate(training, 2501) > 0.0001250001);
  training.learning_rate = 0.01;
  training.burn_in = 14;
  training.flat_epochs = 3;
  training.epoch_pictures = 7 * 8;
  training.max_batches = 70;
  check(training,
        {{0, 0},
         {1, 5.10204081632653e-05},
         {7, 0.0025},
         {13, 0.008622448979591838},
         {14, 0.01},
         {15, 0.009980877896477386},
         {31, 0.005463107944164946},
         {48, 0.0005191221035226144},
         {49, 0.0005},
         {69, 0.0005}});
  training.burn_in = 0;
  check(training, {{0, 0.01}, {69, 0.0005}});
  training.flat_epochs = 10;
  check(training, {{0, 0.0005}, {69, 0.0005}});
}

TEST_CASE("the last epochs are those whose pictures the last steps have") {
  TrainingOptions training;
  training.batch = 4;
  training.epoch_pictures = 10;
  training.max_batches = 25;  // ten epochs
  CHECK_FALSE(in_last_epochs(training, 25));
  training.no_mosaic_epochs = 3;  // pictures 71 to 100
  CHECK_FALSE(in_last_epochs(training, 17));
  CHECK(in_last_epochs(training, 18));
  CHECK(in_last_epochs(training, 25));
  training.no_mosaic_epochs = 10;
  CHECK(in_last_epochs(training, 1));
}

TEST_CASE("a negative step counts from the start") {
  const TrainingOptions training = training_of("policy=steps steps=-1,100 scales=0.1,10");
  CHECK(learning_rate(training, 1) == doctest::Approx(0.01));
  CHECK(learning_rate(training, 100) == doctest::Approx(0.1));
}

TEST_CASE("the sigmoid rate is half way at its step") {
  const TrainingOptions training = training_of("policy=sigmoid gamma=0.1 step=50");
  CHECK(learning_rate(training, 50) == doctest::Approx(0.05));
  CHECK(learning_rate(training, 30) + learning_rate(training, 70) == doctest::Approx(0.1));
}

TEST_CASE("sig is another name for sigmoid") {
  for (Index step = 1; step < 400; step += 13) {
    CHECK(learning_rate(training_of("policy=sig gamma=0.1 step=50"), step) ==
          learning_rate(training_of("policy=sigmoid gamma=0.1 step=50"), step));
  }
}

TEST_CASE("the poly rate stays at zero after the last step") {
  const TrainingOptions training = training_of("policy=poly power=1.5");
  CHECK(learning_rate(training, 400) == 0);
  CHECK(learning_rate(training, 401) == 0);
  CHECK(learning_rate(training, 5000) == 0);
}

// 0.002 + 0.098 * (1 + cos(pi * t / 400)) / 2 with t from 0 to 399, as PyTorch's CosineAnnealingLR.
TEST_CASE("the cosine rate falls from the first step to just above its least after the last") {
  const TrainingOptions training = training_of("policy=cosine learning_rate_min=0.002");
  CHECK(learning_rate(training, 1) == doctest::Approx(0.1));
  CHECK(learning_rate(training, 101) == doctest::Approx(0.0856482322781));
  CHECK(learning_rate(training, 201) == doctest::Approx(0.051));
  CHECK(learning_rate(training, 400) == doctest::Approx(0.00200151127541));
  CHECK(learning_rate(training, 401) == doctest::Approx(0.002));
  CHECK(learning_rate(training, 5000) == doctest::Approx(0.002));
}

TEST_CASE("behind a warm-up the cosine takes the steps that are left") {
  const TrainingOptions training = training_of("policy=cosine burn_in=100 power=1");
  CHECK(learning_rate(training, 50) == doctest::Approx(0.05));
  CHECK(learning_rate(training, 100) == doctest::Approx(0.1));
  for (Index step = 100; step <= 400; step += 20) {
    const double turn = 3.14159265358979 * static_cast<double>(step - 100) / 301;
    CHECK(learning_rate(training, step) == doctest::Approx(0.05 * (1 + std::cos(turn))));
  }
  CHECK(learning_rate(training, 400) > 0);
}

TEST_CASE("a warm-up that takes all steps leaves none to the cosine") {
  const TrainingOptions training = training_of("policy=cosine burn_in=500 power=1");
  CHECK(learning_rate(training, 400) == doctest::Approx(0.08));
  CHECK(learning_rate(training, 500) == doctest::Approx(0.1));
  CHECK(learning_rate(training, 501) == 0);
}

TEST_CASE("burn-in rises up to the rate of the policy, whatever the policy") {
  for (const char* policy : {"constant", "step", "exp", "poly", "sigmoid", "cosine"}) {
    const TrainingOptions training =
        training_of("burn_in=20 power=2 policy=" + std::string(policy));
    for (Index step = 1; step < 20; ++step) {
      CHECK(learning_rate(training, step) ==
            doctest::Approx(0.1 * static_cast<double>(step * step) / 400));
    }
  }
}

}  // namespace tessera::partitioner
