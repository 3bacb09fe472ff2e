#include "partitioner/balance/balance.h"

#include <algorithm>
#include <functional>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace {

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace
using tessera::tests::Draw;

// Devices and links of unlike rates; a few samples on each device.
BalanceProblem random_problem(Draw& draw, int devices, Index most_samples) {
  BalanceProblem problem;
  problem.sample_bytes = 100;
  problem.epochs = static_cast<double>(draw.between(1, 30));
  for (int i = 0; i < devices; ++i) {
    BalanceDevice device;
    device.samples = draw.between(0, most_samples);
    device.seconds_per_sample = 0.01 * static_cast<double>(draw.between(1, 9));
    device.send_bytes_per_s = 100 * static_cast<double>(draw.between(1, 5));
    device.receive_bytes_per_s = 100 * static_cast<double>(draw.between(1, 5));
    if (draw.between(0, 3) == 0) {
      device.capacity = device.samples + draw.between(0, 3);
    }
    problem.devices.push_back(device);
  }
  for (int i = 0; i < devices * devices; ++i) {
    problem.links.push_back({.latency_s = 0.5 * static_cast<double>(draw.between(0, 3)),
                             .bytes_per_s = 100 * static_cast<double>(draw.between(1, 5))});
  }
  return problem;
}

bool is_possible(const BalanceProblem& problem, const std::vector<SampleMove>& moves) {
  std::vector<Index> sent(problem.size());
  for (const SampleMove& move : moves) {
    sent[static_cast<std::size_t>(move.from)] += move.count;
    if (move.count <= 0 || move.from == move.to || move.count % problem.shard != 0) {
      return false;
    }
  }
  const std::vector<Index> after = samples_after(problem, moves);
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const BalanceDevice& device = problem.devices[i];
    if (sent[i] > device.samples || after[i] > device.capacity) {
      return false;
    }
  }
  return true;
}

// The least time over all moves there are.
double least_of_all(const BalanceProblem& problem) {
  const auto devices = static_cast<int>(problem.size());
  double least_s = kInfiniteRate;
  std::vector<SampleMove> moves;
  const std::function<void(int, Index)> choose = [&](int pair, Index left) {
    if (pair == devices * devices) {
      if (is_possible(problem, moves)) {
        least_s = std::min(least_s, balance_of(problem, moves).total_s);
      }
      return;
    }
    const int from = pair / devices;
    const int to = pair % devices;
    if (to == 0) {
      left = problem.devices[static_cast<std::size_t>(from)].samples;
    }
    choose(pair + 1, left);
    for (Index count = problem.shard; from != to && count <= left; count += problem.shard) {
      moves.push_back({from, to, count});
      choose(pair + 1, left - count);
      moves.pop_back();
    }
  };
  choose(0, 0);
  return least_s;
}

}  // namespace

TEST_CASE("the best moves are as good as the best of all there are") {
  Draw draw(1);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const BalanceProblem problem = random_problem(draw, static_cast<int>(draw.between(1, 3)), 4);
    const Balance exact = balance_exactly(problem);
    CHECK(is_possible(problem, exact.moves));
    CHECK(exact.total_s == doctest::Approx(least_of_all(problem)).epsilon(1e-9));
    CHECK(exact.gap() == doctest::Approx(0));
  }
}

// Devices of few different speeds and rates: there often is time left that an epoch could use.
TEST_CASE("the best moves between four devices are as good as the best of all there are") {
  constexpr double kSeconds[] = {0.7, 1, 1.5};
  Draw draw(7);
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    BalanceProblem problem;
    problem.sample_bytes = 10;
    problem.links.resize(16);
    Index left = 12;
    for (int device = 0; device < 4; ++device) {
      BalanceDevice of;
      of.samples = draw.between(0, std::min<Index>(left, 7));
      of.seconds_per_sample = kSeconds[draw.between(0, 2)];
      of.send_bytes_per_s = 50 * static_cast<double>(draw.between(1, 2));
      of.receive_bytes_per_s = 50 * static_cast<double>(draw.between(1, 2));
      left -= of.samples;
      problem.devices.push_back(of);
    }
    const Balance exact = balance_exactly(problem);
    CHECK(exact.total_s == doctest::Approx(least_of_all(problem)).epsilon(1e-9));
    CHECK(exact.gap() == doctest::Approx(0));
  }
}

TEST_CASE("time that the best moves leave is not used up by others") {
  BalanceProblem problem;
  problem.devices = {
      {.samples = 2, .seconds_per_sample = 1, .send_bytes_per_s = 100, .receive_bytes_per_s = 50},
      {.samples = 5, .seconds_per_sample = 0.7, .send_bytes_per_s = 50, .receive_bytes_per_s = 100},
      {.samples = 1,
       .seconds_per_sample = 1.5,
       .send_bytes_per_s = 100,
       .receive_bytes_per_s = 100},
      {.samples = 9,
       .seconds_per_sample = 1.5,
       .send_bytes_per_s = 100,
       .receive_bytes_per_s = 100}};
  problem.links.resize(16);
  problem.sample_bytes = 10;
  CHECK(balance_exactly(problem).total_s == doctest::Approx(5.5));

  problem.devices = {
      {.samples = 299,
       .seconds_per_sample = 1.5,
       .send_bytes_per_s = 100,
       .receive_bytes_per_s = 300},
      {.samples = 1179,
       .seconds_per_sample = 1,
       .send_bytes_per_s = 50,
       .receive_bytes_per_s = 100},
      {.samples = 804, .seconds_per_sample = 1, .send_bytes_per_s = 50, .receive_bytes_per_s = 300},
      {.samples = 625,
       .seconds_per_sample = 3,
       .send_bytes_per_s = 100,
       .receive_bytes_per_s = 100}};
  problem.epochs = 10;
  problem.shard = 100;
  const Balance of_shards = balance_exactly(problem);
  CHECK(of_shards.total_s == doctest::Approx(10080));
  CHECK(of_shards.lower_bound_s <= of_shards.total_s);
}

TEST_CASE("the best moves of whole shards are as good as the best of all there are") {
  Draw draw(4);
  int solved = 0;
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    BalanceProblem problem = random_problem(draw, static_cast<int>(draw.between(1, 3)), 14);
    problem.shard = draw.between(2, 5);
    const double least_s = least_of_all(problem);
    if (least_s == kInfiniteRate) {
      CHECK_THROWS_AS((void)balance_exactly(problem), InputError);
      CHECK_THROWS_AS((void)balance_greedily(problem), InputError);
      continue;
    }
    ++solved;
    const Balance exact = balance_exactly(problem);
    CHECK(is_possible(problem, exact.moves));
    CHECK(exact.total_s == doctest::Approx(least_s).epsilon(1e-9));
    CHECK(exact.gap() == doctest::Approx(0));
    const Balance greedy = balance_greedily(problem);
    CHECK(is_possible(problem, greedy.moves));
    CHECK(exact.total_s <= greedy.total_s * (1 + 1e-9));
  }
  CHECK(solved > 30);
}

TEST_CASE("what is beyond whole shards stays where it is") {
  BalanceProblem problem;
  problem.devices = {{.samples = 107}, {.samples = 0}};
  problem.links.resize(4);
  problem.sample_bytes = 1;
  problem.epochs = 10;
  problem.shard = 10;
  CHECK(balance_exactly(problem).moves == std::vector<SampleMove>{{0, 1, 50}});
  CHECK(balance_greedily(problem).moves == std::vector<SampleMove>{{0, 1, 50}});
  problem.shard = 200;
  CHECK(balance_exactly(problem).moves.empty());
  problem.devices[0].capacity = 100;
  problem.shard = 10;
  CHECK(balance_exactly(problem).moves == std::vector<SampleMove>{{0, 1, 50}});
  problem.devices[0].capacity = 5;
  CHECK_THROWS_WITH_AS(
      (void)balance_exactly(problem),
      "device 0 can hold 5 samples, and 7 of its 107 stay where samples move in shards of 10",
      InputError);
  problem.devices = {{.samples = 100, .capacity = 95}, {.samples = 0, .capacity = 9}};
  CHECK_THROWS_WITH_AS(
      (void)balance_exactly(problem),
      "the devices can hold 9 whole shards of 10 samples, and there are 10: give a "
      "smaller --shard-size",
      InputError);
}

TEST_CASE("greedy moves are possible and never better than the best ones") {
  Draw draw(2);
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const BalanceProblem problem = random_problem(draw, static_cast<int>(draw.between(2, 8)), 2000);
    const Balance exact = balance_exactly(problem);
    const Balance greedy = balance_greedily(problem);
    CHECK(is_possible(problem, exact.moves));
    CHECK(is_possible(problem, greedy.moves));
    CHECK(exact.total_s <= greedy.total_s * (1 + 1e-9));
    CHECK(exact.lower_bound_s <= exact.total_s);
    CHECK(exact.gap() < 1e-3);
  }
}

TEST_CASE("samples stay where moving them takes longer than it saves") {
  BalanceProblem problem;
  problem.devices = {{.samples = 100, .send_bytes_per_s = 1, .receive_bytes_per_s = 1},
                     {.samples = 0, .send_bytes_per_s = 1, .receive_bytes_per_s = 1}};
  problem.links.resize(4);
  problem.sample_bytes = 10;  // 10 s to move what takes 1 s per epoch
  problem.epochs = 5;
  CHECK(balance_exactly(problem).moves.empty());
  CHECK(balance_greedily(problem).moves.empty());
  problem.epochs = 11;
  CHECK(balance_exactly(problem).moves == std::vector<SampleMove>{{0, 1, 50}});
  CHECK(balance_greedily(problem).moves == std::vector<SampleMove>{{0, 1, 50}});
}

TEST_CASE("a device that holds too much gives it away, whatever that costs") {
  BalanceProblem problem;
  problem.devices = {{.samples = 10, .capacity = 6}, {.samples = 0, .seconds_per_sample = 100}};
  problem.links.resize(4, {.latency_s = 1000});
  problem.sample_bytes = 1;
  CHECK(balance_exactly(problem).moves == std::vector<SampleMove>{{0, 1, 4}});
  CHECK(balance_greedily(problem).moves == std::vector<SampleMove>{{0, 1, 4}});
  problem.devices[1].capacity = 3;
  CHECK_THROWS_WITH_AS((void)balance_exactly(problem),
                       "the devices can hold 9 samples together, and there are 10",
                       InputError);
  CHECK_THROWS_AS((void)balance_greedily(problem), InputError);
}

TEST_CASE("of equally good moves, those of the fewest samples are taken") {
  // What the first device sends takes the longest; the others need not pass anything on.
  BalanceProblem problem;
  problem.devices = {{.samples = 4000}, {.samples = 500}, {.samples = 200}, {.samples = 60}};
  problem.links.resize(16);
  problem.sample_bytes = 10;
  for (BalanceDevice& device : problem.devices) {
    device.send_bytes_per_s = 1000;
    device.receive_bytes_per_s = 1000;
  }
  CHECK(balance_exactly(problem).moves ==
        std::vector<SampleMove>{{0, 1, 690}, {0, 2, 990}, {0, 3, 1130}});
}

TEST_CASE("without samples there is nothing to do") {
  BalanceProblem problem;
  problem.devices.resize(2);
  problem.links.resize(4);
  problem.sample_bytes = 1;
  for (const Balance& balance : {balance_exactly(problem), balance_greedily(problem)}) {
    CHECK(balance.moves.empty());
    CHECK(balance.total_s == 0);
    CHECK(balance.gap() == 0);
  }
}

TEST_CASE("training takes less for each sample with faster kernels and fewer updates") {
  Network network;
  network.image = {16, 32, 32};
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {kImage});
  const ClusterProfile cluster = equal_devices({.count = 2});
  const auto seconds = [&](KernelRule rule, Index passes) {
    return seconds_per_sample(
               network, choose_kernels(network, rule), cluster, 4, {.passes = passes})
        .front();
  };
  CHECK(seconds(KernelRule::Winograd, 1) < seconds(KernelRule::Direct, 1));
  CHECK(seconds(KernelRule::Direct, 8) < seconds(KernelRule::Direct, 1));
}
