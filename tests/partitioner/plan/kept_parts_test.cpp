#include "partitioner/plan/kept_parts.h"

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::keepers;

TEST_CASE("the second copy of what a rank has lies on another device, where there is one") {
  CHECK(keepers({"a"}) == std::vector<int>{-1});
  CHECK(keepers({"a", "a", "a"}) == std::vector<int>{-1, -1, -1});
  CHECK(keepers({"a", "b"}) == std::vector<int>{1, 0});
  CHECK(keepers({"a", "b", "c"}) == std::vector<int>{1, 2, 0});
  // The ranks of a device share what the device before it would lose.
  CHECK(keepers({"a", "a", "b", "b"}) == std::vector<int>{2, 3, 0, 1});
  CHECK(keepers({"a", "b", "b"}) == std::vector<int>{1, 0, 0});
  CHECK(keepers({"a", "b", "a", "b", "a"}) == std::vector<int>{1, 0, 3, 2, 1});
  // Those without a part in the steps keep nothing for others.
  CHECK(keepers({"a", "", "b", ""}) == std::vector<int>{2, -1, 0, -1});
}

Index elements_of(const std::vector<partitioner::SecondCopy>& copies) {
  Index elements = 0;
  for (const partitioner::SecondCopy& copy : copies) {
    elements += copy.elements;
  }
  return elements;
}

// Two convolutions, one normalised, of which all ranks hold all.
partitioner::Plan plan_of_tiles(int ranks, partitioner::OptimizerStates optimizer) {
  partitioner::Network network;
  network.image = {3, 16, 16};
  add_layer(
      network,
      partitioner::Convolution{.filters = 8, .size = 3, .padding = 1, .batch_normalize = true},
      {partitioner::kImage});
  add_layer(network, partitioner::Convolution{.filters = 4, .size = 3, .padding = 1}, {0});
  partitioner::Partition partition = make_partition(
      network, {.grid_rows = ranks, .grid_cols = 1, .groups = {{0, 1}}, .ranks = ranks});
  partition.gradient_reduction.optimizer = optimizer;
  return make_plan(network, partition, 1);
}

TEST_CASE("second copies are what the next device does not have: state of the optimizer") {
  using partitioner::OptimizerStates;
  constexpr Index kLearnt = 3 * 8 * 9 + 8 + 8 + 8 * 4 * 9 + 4;  // weights, shifts, scales
  constexpr Index kStatistics = 2 * 8;
  for (const int ranks : {2, 3, 4}) {
    const partitioner::Plan sharded = plan_of_tiles(ranks, OptimizerStates::Sharded);
    CHECK(elements_of(second_copies(sharded, {}, {.is_on = true})) == kLearnt + kStatistics);
    CHECK(elements_of(second_copies(sharded, {.adam = true}, {.is_on = true})) ==
          2 * kLearnt + kStatistics);
    const partitioner::Plan replicated = plan_of_tiles(ranks, OptimizerStates::Replicated);
    CHECK(elements_of(second_copies(replicated, {}, {.is_on = true})) == kStatistics);
    CHECK(elements_of(second_copies(replicated, {.adam = true}, {.is_on = true})) == kStatistics);
    for (const auto& copy : second_copies(sharded, {}, {.is_on = true})) {
      CHECK(copy.to == (copy.from + 1) % ranks);
    }
  }
  CHECK(second_copies(plan_of_tiles(1, OptimizerStates::Sharded), {}, {.is_on = true}).empty());
  const partitioner::Plan three = plan_of_tiles(3, OptimizerStates::Sharded);
  CHECK(second_copies(three, {}, {}).empty());
  CHECK(second_copies(three, {}, {.is_on = true, .devices = {"a", "a", "a"}}).empty());
  const auto of_two = second_copies(three, {}, {.is_on = true, .devices = {"a", "b", "a"}});
  CHECK(elements_of(of_two) == kLearnt + kStatistics);
  CHECK(of_two[0].to == 1);
  CHECK(of_two[2].to == 1);
}

TEST_CASE(
    "memory for kept state is for two steps of a part and its second copy, and one on its way") {
  using partitioner::OptimizerStates;
  constexpr Index kLearnt = 3 * 8 * 9 + 8 + 8 + 8 * 4 * 9 + 4;
  constexpr Index kStatistics = 2 * 8;
  const auto sum_of = [](const partitioner::Plan& plan, const partitioner::StateKeeping& keeping) {
    Index sum = 0;
    for (const Index bytes : kept_bytes_of_ranks(plan, {}, keeping, 4)) {
      sum += bytes;
    }
    return sum;
  };
  constexpr Index kState = 4 * (2 * kLearnt + kStatistics);
  const partitioner::Plan plan = plan_of_tiles(3, OptimizerStates::Sharded);
  CHECK(sum_of(plan, {}) == 0);
  CHECK(sum_of(plan, {.is_on = true, .devices = {"a", "a", "a"}}) == 2 * kState);
  CHECK(sum_of(plan, {.is_on = true}) == 2 * 2 * kState + 4 * (kLearnt + kStatistics));
}

TEST_CASE("state of a replicated optimizer is planned, and checked, wherever elements are held") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    tests::RandomCase random = tests::random_case(seed, 1 + static_cast<int>(seed % 5), {});
    random.partition.gradient_reduction.optimizer = partitioner::OptimizerStates::Replicated;
    partitioner::Plan plan = make_plan(random.network, random.partition, random.batch);
    CHECK(check(random.network, plan).empty());
    for (partitioner::ParameterPlan& parameter : plan.parameters) {
      for (std::size_t rank = 0; is_learnt(parameter) && rank < parameter.updated.size(); ++rank) {
        Index updated = 0;
        for (const Range& run : parameter.updated[rank]) {
          updated += run.size();
        }
        CHECK(updated == parameter.required[rank].size() * parameter.shape.row);
      }
      parameter.updated.front().clear();
    }
    const bool owns = !owned_parts(plan, {}, 0, 0).empty();
    CHECK(check(random.network, plan).empty() == !owns);
  }
}

}  // namespace
