#include "partitioner/gradient_arena.h"

#include <algorithm>
#include <string>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "partitioner/layout.h"

namespace {

using namespace partitioner;  // NOLINT(google-build-using-namespace): a test of this namespace

bool lies_apart(const GradientSlot& a, const GradientSlot& b) {
  return a.offset + a.scalars <= b.offset || b.offset + b.scalars <= a.offset;
}

// The buffers whose gradients layer `layer` on `rank` touches when it runs backward.
std::vector<int> touched(const Plan& plan, int rank, int layer) {
  std::vector<int> buffers =
      plan.read_from[static_cast<std::size_t>(rank)][static_cast<std::size_t>(layer)];
  buffers.push_back(plan.producer(rank, layer));
  std::erase(buffers, kNoBuffer);
  return buffers;
}

void check_arena(const test::RandomCase& random, int rank, bool image_gradient) {
  const Plan plan = make_plan(random.network, random.partition, random.batch);
  const GradientArena arena = gradient_arena(random.network, plan, rank, image_gradient);
  const auto& buffers = plan.buffers[static_cast<std::size_t>(rank)];
  REQUIRE(arena.slots.size() == buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const GradientSlot& slot = arena.slots[i];
    const bool wanted = buffers[i].map != kImage || image_gradient;
    CHECK((slot.scalars > 0) == (wanted && !buffers[i].region.empty()));
    CHECK((!wanted || slot.scalars >= blocked_volume(buffers[i].region)));
    CHECK(slot.offset % 16 == 0);
    CHECK(slot.offset + slot.scalars <= arena.scalars);
    for (std::size_t j = 0; j < i; ++j) {
      const GradientSlot& other = arena.slots[j];
      CHECK((slot.scalars == 0 || other.scalars == 0 || !slot.meets(other) ||
             lies_apart(slot, other)));
    }
  }
  // Whatever a layer touches is there from the first layer that adds to it to the last that reads
  // it.
  for (int layer = 0; layer < random.network.size(); ++layer) {
    for (const int buffer : touched(plan, rank, layer)) {
      const GradientSlot& slot = arena.slots[static_cast<std::size_t>(buffer)];
      CHECK(slot.from >= layer);
      CHECK(slot.to <= layer);
    }
  }
}

}  // namespace

TEST_CASE("gradients that are needed at the same time lie apart, for any partition") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 5);
    const test::RandomCase random = test::random_case(seed, ranks, {});
    CAPTURE(seed);
    for (int rank = 0; rank < ranks; ++rank) {
      check_arena(random, rank, seed % 2 == 0);
    }
  }
}

TEST_CASE("a chain of layers needs two gradients at a time, the output's from the start") {
  Network network;
  network.image = {16, 10, 10};
  for (int layer = 0; layer < 6; ++layer) {
    add_layer(network, Convolution{.filters = 16, .size = 1}, {layer - 1});
  }
  const Plan plan = make_plan(network, single_tile(network), 1);
  const GradientArena arena = gradient_arena(network, plan, 0, false);
  CHECK(arena.scalars == 2 * 16 * 10 * 10);
  const int output = plan.producer(0, 5);
  CHECK(arena.slots[static_cast<std::size_t>(output)].from == 6);
}

TEST_CASE("the image's gradient is kept to the end where it is wanted") {
  Network network;
  network.image = {16, 10, 10};
  add_layer(network, Convolution{.filters = 16, .size = 1}, {kImage});
  const Plan plan = make_plan(network, single_tile(network), 1);
  const auto image = static_cast<std::size_t>(plan.producer(0, kImage));
  CHECK(gradient_arena(network, plan, 0, false).slots[image].scalars == 0);
  const GradientSlot slot = gradient_arena(network, plan, 0, true).slots[image];
  CHECK(slot.scalars == 16 * 10 * 10);
  CHECK(slot.to == kImage);
}
