// Tensors in chunks, between rank 0 and owners of any runs.

#include "engine/execution/parameter_chunks.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "engine/execution/parameters.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::gather_chunks;
using engine::held_values;
using engine::owned_alone;
using engine::owned_values;
using engine::PlacedRun;
using engine::scatter_chunks;
using partitioner::ParameterPlan;

constexpr std::uint64_t kChunkCases = 20;
// One element, less than most rows, several rows, all at once.
constexpr Index kLongest[] = {1, 4, 50, engine::kChunkElements};
constexpr double kUntouched = -1;

// Any runs owned by any ranks, next to each other as well, some ranks without any; each rank
// requires the channels of what it owns and perhaps more.
ParameterPlan random_parameter(tests::Draw& draw, int ranks) {
  ParameterPlan plan;
  plan.shape = {draw.between(1, 8), draw.between(1, 12)};
  plan.owned.resize(static_cast<std::size_t>(ranks));
  const Index size = plan.shape.channels * plan.shape.row;
  Index end = 0;
  for (Index begin = 0; begin < size; begin = end) {
    end = std::min(size, begin + draw.between(1, 30));
    plan.owned[static_cast<std::size_t>(draw.between(0, ranks - 1))].push_back({begin, end});
  }
  for (const std::vector<Range>& runs : plan.owned) {
    Range channels;
    if (!runs.empty()) {
      channels = {runs.front().begin / plan.shape.row,
                  (runs.back().end + plan.shape.row - 1) / plan.shape.row};
    }
    plan.required.push_back(draw.chance(0.3) ? Range{0, plan.shape.channels} : channels);
  }
  return plan;
}

Index size_of(const ParameterPlan& plan) {
  return plan.shape.channels * plan.shape.row;
}

// Room for everything, whatever the placing.
std::vector<double> untouched(const ParameterPlan& plan) {
  return std::vector<double>(static_cast<std::size_t>(size_of(plan)), kUntouched);
}

// An array in which each element that the rank has is its number.
std::vector<double> numbered(const ParameterPlan& plan,
                             const std::vector<PlacedRun>& runs,
                             int rank) {
  std::vector<double> array = untouched(plan);
  for (const PlacedRun& run : runs) {
    for (Index i = 0; run.rank == rank && i < run.elements.size(); ++i) {
      array[static_cast<std::size_t>(run.at + i)] = static_cast<double>(run.elements.begin + i);
    }
  }
  return array;
}

// Whether all of the tensor came in order on rank 0, and nothing elsewhere.
bool arrives_in_order(const ParameterPlan& plan,
                      const std::vector<PlacedRun>& from,
                      Index longest,
                      const Communicator& world) {
  const std::vector<double> mine = numbered(plan, from, world.rank());
  Index next = 0;
  bool right = true;
  gather_chunks(
      world,
      from,
      mine.data(),
      [&](std::span<const double> chunk) {
        for (const double value : chunk) {
          right = right && value == static_cast<double>(next++);
        }
      },
      longest);
  return right && next == (world.rank() == 0 ? size_of(plan) : 0);
}

// Whether each rank got what it has a place for, and nothing else.
bool arrives_in_place(const ParameterPlan& plan,
                      const std::vector<PlacedRun>& to,
                      Index longest,
                      const Communicator& world) {
  std::vector<double> mine = untouched(plan);
  bool short_enough = true;
  scatter_chunks(
      world,
      to,
      mine.data(),
      [&](Index begin, std::span<double> chunk) {
        short_enough = short_enough && std::ssize(chunk) <= longest;
        for (double& value : chunk) {
          value = static_cast<double>(begin++);
        }
      },
      longest);
  return short_enough && mine == numbered(plan, to, world.rank());
}

TEST_CASE("chunks of any size from owners of any runs arrive in the tensor's order") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < kChunkCases; ++seed) {
    tests::Draw draw(seed);
    const ParameterPlan plan = random_parameter(draw, world.size());
    for (const Index longest : kLongest) {
      CHECK_MESSAGE(arrives_in_order(plan, owned_values(plan), longest, world), "seed ", seed);
      CHECK_MESSAGE(arrives_in_order(plan, owned_alone(plan), longest, world), "seed ", seed);
    }
  }
}

TEST_CASE("chunks of any size arrive wherever there is a place for them, and nowhere else") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < kChunkCases; ++seed) {
    tests::Draw draw(seed);
    const ParameterPlan plan = random_parameter(draw, world.size());
    for (const Index longest : kLongest) {
      CHECK_MESSAGE(arrives_in_place(plan, owned_alone(plan), longest, world), "seed ", seed);
      CHECK_MESSAGE(arrives_in_place(plan, held_values(plan), longest, world), "seed ", seed);
    }
  }
}

TEST_CASE("what rank 0 has itself is taken from where it lies and written to where it belongs") {
  const Communicator world = Communicator::world();
  constexpr Index kSize = 3 * engine::kChunkElements / 2;
  const std::vector<PlacedRun> all_on_first = {{0, {0, kSize}, 0}};
  std::vector<float> mine(kSize);
  const float* next = mine.data();
  bool there = true;
  const auto look = [&](std::span<const float> chunk) {
    there = there && chunk.data() == next;
    next += chunk.size();
  };
  gather_chunks(world, all_on_first, std::as_const(mine).data(), look);
  next = mine.data();
  scatter_chunks(
      world, all_on_first, mine.data(), [&](Index, std::span<float> chunk) { look(chunk); });
  CHECK(there);
}

TEST_CASE("plans place each element once with its owner, where it holds it") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < kChunkCases; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, world.size(), {});
    const partitioner::Plan plan = make_plan(random.network, random.partition, random.batch);
    engine::ParameterSet<double> set(random.network, plan, world, false);
    for (engine::Parameter<double>& parameter : set.all()) {
      for (Index i = 0; i < parameter.values.size(); ++i) {
        parameter.values[i] = static_cast<double>(parameter.held.begin + i);
      }
      const std::vector<double> whole = set.gather(parameter, parameter.values.data());
      bool right = world.rank() != 0 || std::ssize(whole) == parameter.size();
      for (std::size_t i = 0; i < whole.size(); ++i) {
        right = right && whole[i] == static_cast<double>(i);
      }
      CHECK_MESSAGE(right, "seed ", seed);
    }
  }
}

}  // namespace
