#include <cmath>
#include <fstream>
#include <sstream>

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
