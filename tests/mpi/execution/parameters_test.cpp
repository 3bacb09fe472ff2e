// Gradients on their way to owners and values on their way back, in buckets of any size, exact and
// rounded.

#include "engine/execution/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/memory_use.h"
#include "tests/support/random_network.h"
#include "tests/support/reduced_gradients.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "engine/execution/execution.h"
#include "engine/train/optimizer.h"
#include "partitioner/memory/memory.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchNormMode;
using engine::Communicator;
using engine::Optimizer;
using engine::Parameter;
using engine::ParameterSet;
using partitioner::Compression;
using partitioner::GradientReduction;
using partitioner::Plan;

constexpr std::uint64_t kParameterCases = 20;

// Each layer in a bucket of its own, some together, all in one.
constexpr Index kBucketBytes[] = {1, 2000, Index{1} << 30U};

Plan plan_of(tests::RandomCase random, const GradientReduction& gradient_reduction) {
  random.partition.gradient_reduction = gradient_reduction;
  return make_plan(random.network, random.partition, random.batch);
}

// What a rank's backward pass might have found.
float gradient_of(int rank, std::uint64_t step, std::size_t parameter, Index element) {
  return static_cast<float>(engine::random_normal(static_cast<std::uint64_t>(rank) * 100 + step,
                                                  parameter,
                                                  static_cast<std::uint64_t>(element)));
}

void fill_gradients(ParameterSet<float>& set, int rank, std::uint64_t step) {
  for (std::size_t i = 0; i < set.all().size(); ++i) {
    Parameter<float>& parameter = set.all()[i];
    for (Index at = 0; at < parameter.gradient.size(); ++at) {
      parameter.gradient[at] = gradient_of(rank, step, i, parameter.held.begin + at);
    }
  }
}

// The owner's share first, then those of the others who hold the element, in rank order.
float sum_of(const Parameter<float>& parameter,
             std::size_t place,
             Index element,
             int owner,
             std::uint64_t step) {
  float sum = gradient_of(owner, step, place, element);
  const Index row = parameter.plan->shape.row;
  for (int rank = 0; rank < static_cast<int>(parameter.plan->required.size()); ++rank) {
    const Range& channels = parameter.plan->required[static_cast<std::size_t>(rank)];
    if (rank != owner && channels.begin * row <= element && element < channels.end * row) {
      sum += gradient_of(rank, step, place, element);
    }
  }
  return sum;
}

bool owned_gradients_are_right(ParameterSet<float>& set, int rank, std::uint64_t step) {
  bool right = true;
  for (std::size_t i = 0; i < set.all().size(); ++i) {
    const Parameter<float>& parameter = set.all()[i];
    if (parameter.gradient.size() == 0) {
      continue;
    }
    for (const Range& run : parameter.plan->owned[static_cast<std::size_t>(rank)]) {
      for (Index element = run.begin; element < run.end; ++element) {
        right = right && parameter.gradient[element - parameter.held.begin] ==
                             sum_of(parameter, i, element, rank, step);
      }
    }
  }
  return right;
}

void update(ParameterSet<float>& set, Optimizer<float>& optimizer, Index step) {
  for (int bucket = 0; bucket < set.buckets(); ++bucket) {
    set.start_gradients(bucket, true);
  }
  for (int bucket = set.buckets() - 1; bucket >= 0; --bucket) {
    set.finish_gradients(bucket);
    for (const std::size_t i : set.in_bucket(bucket)) {
      optimizer.update(set, i, step);
    }
    set.start_values(bucket);
  }
  set.finish_values();
}

// Whether each rank holds what the owners have, to the bit.
bool copies_are_alike(ParameterSet<float>& set, const Communicator& world) {
  bool alike = true;
  for (Parameter<float>& parameter : set.all()) {
    std::vector<float> whole = set.gather(parameter, parameter.values.data());
    const auto bytes = world.gather_all(
        engine::bytes_of(static_cast<const float*>(whole.data()), std::ssize(whole)));
    whole.resize(static_cast<std::size_t>(parameter.size()));
    std::memcpy(whole.data(), bytes[0].data(), bytes[0].size());
    alike = alike && std::equal(parameter.values.data(),
                                parameter.values.data() + parameter.values.size(),
                                whole.data() + parameter.held.begin);
  }
  return alike;
}

TEST_CASE("owners add up gradients in rank order, whatever the size of buckets") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < kParameterCases; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    for (const Index bytes : kBucketBytes) {
      const Plan plan = plan_of(random, {.bucket_bytes = bytes});
      ParameterSet<float> set(random.network, plan, world, true);
      fill_gradients(set, world.rank(), seed);
      tests::reduce_gradients(set, BatchNormMode::Frozen);
      CHECK_MESSAGE(owned_gradients_are_right(set, world.rank(), seed), "seed ", seed);
    }
  }
}

constexpr Compression kExactCompressions[] = {Compression::Exact,
                                              Compression::Half,
                                              {.kind = Compression::Kind::TopK, .fraction = 0.1},
                                              {.kind = Compression::Kind::Sign},
                                              {.kind = Compression::Kind::LowRank, .rank = 2}};

TEST_CASE("after an update all ranks hold the same bits, compressed or not") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < kParameterCases; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    for (const Compression& compression : kExactCompressions) {
      const Plan plan = plan_of(random, {.bucket_bytes = 2000, .compression = compression});
      ParameterSet<float> set(random.network, plan, world, true);
      set.initialize(seed);
      Optimizer<float> optimizer({}, set, world.rank());
      for (std::uint64_t step = 1; step <= 3; ++step) {
        fill_gradients(set, world.rank(), step);
        update(set, optimizer, static_cast<Index>(step));
      }
      CHECK_MESSAGE(copies_are_alike(set, world), "seed ", seed);
    }
  }
}

// Over all ranks and elements of a bucket.
double sum_over_ranks(double mine, const Communicator& world) {
  double sum = 0;
  for (const double theirs : world.of_ranks(mine)) {
    sum += theirs;
  }
  return sum;
}

double sum_of_elements(const double* numbers, Index count) {
  double sum = 0;
  for (Index i = 0; i < count; ++i) {
    sum += numbers[i];
  }
  return sum;
}

TEST_CASE(
    "what owners have got and what senders keep is the sum of all gradients, after each step") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < kParameterCases; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    for (const Compression& compression : kExactCompressions) {
      if (!compression.by_runs()) {
        continue;
      }
      const Plan plan = plan_of(random, {.bucket_bytes = 2000, .compression = compression});
      ParameterSet<double> set(random.network, plan, world, true);
      std::vector<double> all(static_cast<std::size_t>(set.buckets()));
      std::vector<double> got(all.size());
      for (std::uint64_t step = 1; step <= 5; ++step) {
        for (std::size_t i = 0; i < set.all().size(); ++i) {
          Parameter<double>& parameter = set.all()[i];
          for (Index at = 0; at < parameter.gradient.size(); ++at) {
            parameter.gradient[at] =
                static_cast<double>(gradient_of(world.rank(), step, i, parameter.held.begin + at));
          }
        }
        for (int bucket = 0; bucket < set.buckets(); ++bucket) {
          const auto place = static_cast<std::size_t>(bucket);
          for (const std::size_t i : set.in_bucket(bucket)) {
            all[place] +=
                sum_of_elements(set.all()[i].gradient.data(), set.all()[i].gradient.size());
          }
          set.start_gradients(bucket, true);
          set.finish_gradients(bucket);
          for (const std::size_t i : set.in_bucket(bucket)) {
            const Parameter<double>& parameter = set.all()[i];
            for (const Range& run : parameter.plan->owned[static_cast<std::size_t>(world.rank())]) {
              got[place] += sum_of_elements(
                  parameter.gradient.data() + run.begin - parameter.held.begin, run.size());
            }
          }
          const auto* kept = set.error_feedback()[2 * place + 1];
          const double left = sum_of_elements(kept->data(), kept->size());
          const double expected = sum_over_ranks(all[place], world);
          CHECK(sum_over_ranks(got[place] + left, world) ==
                doctest::Approx(expected).epsilon(1e-9).scale(1));
          set.start_values(bucket);
          set.finish_values(bucket);
        }
      }
    }
  }
}

TEST_CASE("one rank rounds nothing") {
  const Communicator alone = Communicator::self();
  const tests::RandomCase random = tests::random_case(3, 1, {});
  const Plan exact_plan = plan_of(random, {});
  const Plan half_plan = plan_of(random, {.compression = Compression::Half});
  ParameterSet<float> exact(random.network, exact_plan, alone, true);
  ParameterSet<float> half(random.network, half_plan, alone, true);
  for (ParameterSet<float>* set : {&exact, &half}) {
    set->initialize(1);
    Optimizer<float> optimizer({}, *set, 0);
    fill_gradients(*set, 0, 1);
    update(*set, optimizer, 1);
  }
  for (std::size_t i = 0; i < exact.all().size(); ++i) {
    const auto& values = exact.all()[i].values;
    CHECK(std::equal(values.data(), values.data() + values.size(), half.all()[i].values.data()));
  }
  CHECK(half.message_bytes() == 0);
}

// The largest difference between the values of two sets.
double difference(ParameterSet<float>& a, ParameterSet<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.all().size(); ++i) {
    for (Index at = 0; at < a.all()[i].values.size(); ++at) {
      const double apart = std::abs(static_cast<double>(a.all()[i].values[at]) -
                                    static_cast<double>(b.all()[i].values[at]));
      most = std::max(most, apart);
    }
  }
  return most;
}

// Steps without momentum by the same gradients, exact and rounded.
double drift(const tests::RandomCase& random, const Communicator& world, Index steps) {
  partitioner::TrainingOptions training;
  training.momentum = 0;
  training.decay = 0;
  training.learning_rate = 1e-3;
  const Plan exact_plan = plan_of(random, {});
  const Plan half_plan = plan_of(random, {.compression = Compression::Half});
  ParameterSet<float> exact(random.network, exact_plan, world, true);
  ParameterSet<float> half(random.network, half_plan, world, true);
  for (ParameterSet<float>* set : {&exact, &half}) {
    set->initialize(1);
    Optimizer<float> optimizer(training, *set, world.rank());
    for (Index step = 1; step <= steps; ++step) {
      fill_gradients(*set, world.rank(), static_cast<std::uint64_t>(step));
      update(*set, optimizer, step);
    }
  }
  return difference(exact, half);
}

TEST_CASE("what rounding leaves is made up for, so that errors do not grow from step to step") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  const tests::RandomCase random = tests::random_case(5, world.size(), {});
  // Two rounding errors of gradients of up to 5, in units of 2^-11, by the rate, and that of a
  // change; and the rounding of sums of single precision.
  constexpr double kOfOneStep = 1e-3 * 5 * 0x1p-10;
  const double ranks = world.size();
  CHECK(drift(random, world, 1) < 2 * ranks * kOfOneStep);
  CHECK(drift(random, world, 100) < 2 * ranks * kOfOneStep);
}

TEST_CASE("messages and error feedback take up as much memory as planned") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < kParameterCases; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    for (const Compression& compression : kExactCompressions) {
      for (const bool training : {true, false}) {
        const Plan plan = plan_of(random, {.bucket_bytes = 2000, .compression = compression});
        engine::Execution<float> execution(random.network, plan, world, {.training = training});
        const auto planned =
            tests::planned_memory(random.network, plan, world.rank(), {.training = training});
        // Layers make room for the statistics of a backward pass whether there is one or not.
        CHECK_MESSAGE(execution.memory().messages == planned.messages, "seed ", seed);
      }
    }
  }
}

}  // namespace
