#include "partitioner/memory/activation_arena.h"

#include <algorithm>
#include <string>

#include "tests/support/chain.h"
#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "partitioner/base/layout.h"
#include "partitioner/network/layer_traits.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

std::vector<MemorySlot> all_slots(const ActivationArena& arena) {
  std::vector<MemorySlot> all;
  for (const auto* slots : {&arena.values, &arena.recomputed, &arena.restored, &arena.gradients}) {
    all.insert(all.end(), slots->begin(), slots->end());
  }
  for (const auto* slots : {&arena.pre_activations,
                            &arena.recomputed_pre_activations,
                            &arena.argmax,
                            &arena.recomputed_argmax}) {
    all.insert(all.end(), slots->begin(), slots->end());
  }
  const auto is_same = [](const MemorySlot& a, const MemorySlot& b) {
    return a.offset == b.offset && a.to == b.to;
  };
  for (std::size_t layer = 0; layer < arena.pre_activations.size(); ++layer) {
    const MemorySlot& gradients = arena.pre_activation_gradients[layer];
    if (!is_same(gradients, arena.pre_activations[layer]) &&
        !is_same(gradients, arena.recomputed_pre_activations[layer])) {
      all.push_back(gradients);
    }
  }
  std::erase_if(all, [](const MemorySlot& slot) { return slot.bytes == 0; });
  return all;
}

bool lies_apart(const MemorySlot& a, const MemorySlot& b) {
  return a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
}

// What is needed at the same time lies apart, on its own cache lines, inside the arena.
void check_places(const ActivationArena& arena) {
  const std::vector<MemorySlot> all = all_slots(arena);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].offset % 64 == 0);
    CHECK(all[i].offset + all[i].bytes <= arena.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      CHECK((!all[i].meets(all[j]) || lies_apart(all[i], all[j])));
    }
  }
}

bool holds(const MemorySlot& slot, int time) {
  return slot.bytes > 0 && slot.from <= time && time <= slot.to;
}

// The last layer of the group.
int end_of(const Plan& plan, int layer) {
  return groups_of(plan)[static_cast<std::size_t>(plan.group(layer))].last;
}

// What a layer that runs again touches then is there.
void check_recomputed_layer(
    const Network& network, const Plan& plan, int rank, int layer, const ActivationArena& arena) {
  const auto at = static_cast<std::size_t>(layer);
  const int time = recompute_time(network, end_of(plan, layer), layer);
  const int result = arena.fused_pool[at] == kNoLayer ? layer : arena.fused_pool[at];
  CHECK((!keeps_pre_activations(network.layer(layer).operation) ||
         holds(arena.recomputed_pre_activations[at], time)));
  if (arena.again[at].output) {
    CHECK(holds(arena.recomputed[plan.producer(rank, result)], time));
    CHECK((!std::holds_alternative<MaxPool>(network.layer(result).operation) ||
           !network.layer(result).has_backward ||
           holds(arena.recomputed_argmax[static_cast<std::size_t>(result)], time)));
  }
  for (std::size_t i = 0; i < network.layer(layer).inputs.size(); ++i) {
    const BufferIndex input = plan.read_from[static_cast<std::size_t>(rank)][at][i];
    if (input == kNoBuffer) {
      continue;
    }
    const bool inside = plan.group(network.layer(layer).inputs[i]) == plan.group(layer);
    CHECK((holds(arena.values[input], time) || holds(arena.restored[input], time) ||
           (inside && holds(arena.recomputed[input], time))));
  }
}

// What a layer touches in its three moments is there then.
void check_layer(
    const Network& network, const Plan& plan, int rank, int layer, const ActivationArena& arena) {
  const auto at = static_cast<std::size_t>(layer);
  const LayerSpec& spec = network.layer(layer);
  const Operation& operation = spec.operation;
  const int first = gradient_time(network, layer);
  const bool is_fused = layer > 0 && arena.fused_pool[at - 1] == layer;
  const bool has_pool = arena.fused_pool[at] != kNoLayer;
  const int result = has_pool ? arena.fused_pool[at] : layer;
  const BufferIndex output = plan.producer(rank, result);
  if (output == kNoBuffer || is_fused || plan.tile(layer, rank).computed.empty()) {
    return;
  }
  CHECK(holds(arena.values[output], layer));
  CHECK(holds(arena.gradients[output], first) == spec.has_backward);
  CHECK((!backward_reads_output(network.layer(layer)) || holds(arena.values[output], first) ||
         holds(arena.recomputed[output], first)));
  if (arena.again[at].runs) {
    check_recomputed_layer(network, plan, rank, layer, arena);
  }
  if (!spec.has_backward) {
    CHECK((!keeps_pre_activations(operation) || holds(arena.pre_activations[at], layer)));
    CHECK(!holds(arena.pre_activations[at], layer + 1));
    CHECK(arena.pre_activation_gradients[at].bytes == 0);
  } else if (keeps_pre_activations(operation)) {
    const MemorySlot& pre_activations =
        arena.again[at].runs ? arena.recomputed_pre_activations[at] : arena.pre_activations[at];
    CHECK(holds(arena.pre_activations[at], layer));
    CHECK(holds(pre_activations, first));
    CHECK(holds(pre_activations, first + 1));
    if (normalizes(operation) && network.layer(layer).inputs[0] == kImage) {
      const auto of_pool = static_cast<std::size_t>(result);
      CHECK(holds(arena.gradients[output], first + 1));
      CHECK((!has_pool || holds(arena.argmax[of_pool], first + 1) ||
             holds(arena.recomputed_argmax[of_pool], first + 1)));
    }
  } else if (!has_pool) {
    CHECK(holds(arena.gradients[output], first + 1));
  } else if (arena.argmax_pool[at] == kNoLayer || network.layer(layer).inputs[0] != kImage) {
    CHECK(holds(arena.pre_activation_gradients[at], first));
    CHECK(holds(arena.pre_activation_gradients[at], first + 1));
  }
  if (arena.argmax_pool[at] != kNoLayer) {
    const auto of_pool = static_cast<std::size_t>(arena.argmax_pool[at]);
    CHECK(holds(arena.gradients[output], first + 1));
    CHECK((holds(arena.argmax[of_pool], first + 1) ||
           holds(arena.recomputed_argmax[of_pool], first + 1)));
  }
  for (const BufferIndex input : plan.read_from[static_cast<std::size_t>(rank)][at]) {
    if (input == kNoBuffer) {
      continue;
    }
    const int map = plan.buffer(rank, input).map;
    CHECK(holds(arena.values[input], layer));
    CHECK((map == kImage || !spec.has_backward ||
           holds(arena.gradients[input], first + 1) == network.takes_gradient(map)));
    CHECK((network.takes_gradient(map) || arena.gradients[input].bytes == 0));
    CHECK((!backward_reads_inputs(network.layer(layer)) || holds(arena.values[input], first + 1) ||
           holds(arena.recomputed[input], first + 1) || holds(arena.restored[input], first + 1)));
  }
}

Network pooled_chain() {
  return tests::chain({16, 16, 16},
                      {tests::normalized(tests::convolution(16, 3)),
                       MaxPool{2, 2, 0},
                       tests::normalized(tests::convolution(32, 3)),
                       tests::normalized(tests::convolution(32, 3)),
                       tests::convolution(16, 1)});
}

const MemorySlot& of_map(const ActivationArena::OfBuffers& slots, const Plan& plan, int map) {
  return slots[plan.producer(0, map)];
}

}  // namespace

TEST_CASE("what is needed at the same time lies apart, and all is there when it is needed") {
  int fused = 0;
  int restored = 0;
  int recomputed = 0;
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 5);
    const double frozen = seed < 120 ? 0 : 1;
    const tests::RandomCase random = tests::random_case(seed, ranks, {.frozen = frozen});
    const Plan plan = make_plan(random.network, random.partition, random.batch);
    CAPTURE(seed);
    const std::vector<Index> bytes = arena_bytes_of_ranks(random.network, plan, {});
    for (int rank = 0; rank < ranks; ++rank) {
      const ActivationArena arena = activation_arena(random.network, plan, rank, {});
      CHECK(bytes[static_cast<std::size_t>(rank)] == arena.bytes);
      check_places(arena);
      for (int layer = 0; layer < random.network.size(); ++layer) {
        check_layer(random.network, plan, rank, layer, arena);
        fused += arena.fused_pool[static_cast<std::size_t>(layer)] != kNoLayer ? 1 : 0;
        recomputed += arena.again[static_cast<std::size_t>(layer)].runs ? 1 : 0;
      }
      restored += std::any_of(arena.restored.begin(),
                              arena.restored.end(),
                              [](const MemorySlot& slot) { return slot.bytes > 0; })
                      ? 1
                      : 0;
    }
  }
  CHECK(fused > 10);
  CHECK(restored > 10);
  CHECK(recomputed > 100);
}

TEST_CASE("a frozen map goes when its readers are done, but for what the weights above it read") {
  Network network = tests::chain({16, 10, 10},
                                 {tests::normalized(tests::convolution(16, 3)),
                                  tests::normalized(tests::convolution(16, 3)),
                                  Dropout{.probability = 0.5},
                                  tests::convolution(16, 3),
                                  tests::convolution(16, 3)});
  const Plan whole = make_plan(network, single_tile(network), 1);
  const Index in_full = activation_arena(network, whole, 0, {}).bytes;
  freeze(network, 1);
  const Plan plan = make_plan(network, single_tile(network), 1);
  const ActivationArena arena = activation_arena(network, plan, 0, {});
  CHECK(of_map(arena.values, plan, 0).to == 1);
  CHECK(of_map(arena.values, plan, 1).to == 2);
  CHECK(of_map(arena.values, plan, 2).to == gradient_time(network, 3) + 1);
  for (const int map : {0, 1, 2}) {
    CHECK(of_map(arena.gradients, plan, map).bytes == 0);
    CHECK(of_map(arena.restored, plan, map).bytes == 0);
  }
  CHECK(arena.pre_activations[1].to == 1);
  const Index map = Index{16} * 10 * 10 * 4;
  const Index framed = Index{16} * 12 * 12 * 4;
  CHECK(arena.bytes == 3 * framed + 2 * map);  // maps 2 and 3, the gradient of 3; map 4, its own
  CHECK(arena.bytes < in_full);
}

TEST_CASE("kept maps all lie apart, and none is left out") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const tests::RandomCase random = tests::random_case(seed, 3, {});
    const Plan plan = make_plan(random.network, random.partition, random.batch);
    const ActivationArena arena = activation_arena(random.network, plan, 1, {.keep_maps = true});
    const std::vector<MemorySlot> all = all_slots(arena);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        CHECK(lies_apart(all[i], all[j]));
      }
    }
    for (int map = 0; map < random.network.size(); ++map) {
      const BufferIndex buffer = plan.producer(1, map);
      CHECK((buffer == kNoBuffer || plan.buffer(1, buffer).region.empty() ||
             arena.values[buffer].bytes > 0));
    }
  }
}

TEST_CASE("a chain of plain convolutions needs two gradients at a time") {
  Network network;
  network.image = {16, 10, 10};
  for (int layer = 0; layer < 6; ++layer) {
    add_layer(network,
              Convolution{.filters = 16, .size = 1, .activation = Activation::Relu},
              {layer - 1});
  }
  const Plan plan = make_plan(network, single_tile(network), 1);
  const Index map = Index{16} * 10 * 10 * 4;
  CHECK(activation_arena(network, plan, 0, {}).bytes == (7 + 2) * map);
  CHECK(activation_arena(network, plan, 0, {.training = false}).bytes == 2 * map);
}

TEST_CASE("a map between a normalised convolution and its pool is stored nowhere") {
  const Network network = pooled_chain();
  const Plan plan = make_plan(network, single_tile(network), 2);
  const ActivationArena arena = activation_arena(network, plan, 0, {});
  CHECK(arena.fused_pool[0] == 1);
  CHECK(of_map(arena.values, plan, 0).bytes == 0);
  CHECK(of_map(arena.gradients, plan, 0).bytes == 0);
  CHECK(arena.argmax[1].bytes == 2 * 16 * 8 * 8);
  CHECK(arena.pre_activation_gradients[0].offset == arena.pre_activations[0].offset);
}

TEST_CASE(
    "where the argmax is enough for the weights of the first layer, its pre-activations have no "
    "gradient") {
  const Convolution convolution{.filters = 4, .size = 3, .padding = 1};
  const Network network =
      tests::chain({3, 16, 16}, {convolution, MaxPool{2, 2, 0}, convolution, MaxPool{2, 2, 0}});
  const Plan plan = make_plan(network, single_tile(network), 2);
  const std::vector<int> pools{1, kNoLayer, 3, kNoLayer};
  const ActivationArena arena = activation_arena(network, plan, 0, {});
  CHECK(arena.argmax_pool == pools);
  CHECK(arena.fused_pool == pools);
  CHECK(arena.pre_activation_gradients[0].bytes == 0);
  CHECK(arena.pre_activation_gradients[2].bytes > 0);
  const ActivationArena to_image = activation_arena(network, plan, 0, {.image_gradient = true});
  CHECK(to_image.pre_activation_gradients[0].bytes > 0);
  const ActivationArena kept = activation_arena(network, plan, 0, {.keep_maps = true});
  CHECK(kept.argmax_pool == pools);
  CHECK(kept.fused_pool[0] == kNoLayer);
}

TEST_CASE("the argmax is not enough where some of the pool's input is another rank's") {
  const Convolution convolution{.filters = 4, .size = 3, .padding = 1};
  const Network network = tests::chain({3, 18, 18}, {convolution, MaxPool{2, 2, 0}});
  const Partition apart = make_partition(network, {.grid_rows = 2, .groups = {{0, 0}, {1, 1}}});
  const ActivationArena arena = activation_arena(network, make_plan(network, apart, 1), 0, {});
  CHECK(arena.argmax_pool[0] == kNoLayer);  // windows lie across the cut of the convolution
}

TEST_CASE("a normalised map is not kept between its forward and its backward readers") {
  const Network network = pooled_chain();
  const Plan plan = make_plan(network, single_tile(network), 2);
  const ActivationArena arena = activation_arena(network, plan, 0, {});
  CHECK(of_map(arena.values, plan, 2).to == 3);
  CHECK(of_map(arena.restored, plan, 2).from == gradient_time(network, 3) + 1);
  CHECK(of_map(arena.restored, plan, 1).bytes == 0);  // a pool's
}

TEST_CASE("a map that ranks exchange is kept, and not fused with a pool") {
  const Network network = pooled_chain();
  Partition halves = make_partition(network, {.grid_rows = 2, .groups = {{0, 0}, {1, 4}}});
  const Plan plan = make_plan(network, halves, 1);
  const ActivationArena apart = activation_arena(network, plan, 0, {});
  CHECK(of_map(apart.values, plan, 1).bytes > 0);
  halves = make_partition(network, {.grid_rows = 2, .groups = {{0, 2}, {3, 4}}});
  const Plan fused = make_plan(network, halves, 1);
  const ActivationArena arena = activation_arena(network, fused, 0, {});
  CHECK(arena.fused_pool[0] == 1);
  CHECK(of_map(arena.restored, fused, 2).bytes == 0);  // its halo came from the other rank
}

TEST_CASE("the image's gradient is kept to the end where it is wanted") {
  Network network;
  network.image = {16, 10, 10};
  add_layer(network, Convolution{.filters = 16, .size = 1}, {kImage});
  const Plan plan = make_plan(network, single_tile(network), 1);
  CHECK(of_map(activation_arena(network, plan, 0, {}).gradients, plan, kImage).bytes == 0);
  const ActivationArena arena = activation_arena(network, plan, 0, {.image_gradient = true});
  CHECK(of_map(arena.gradients, plan, kImage).bytes == 16 * 10 * 10 * 4);
  CHECK(of_map(arena.gradients, plan, kImage).to >= gradient_time(network, kImage));
}

TEST_CASE("kinds of activations add up to the arena, and less is kept than every input once") {
  const Network network = pooled_chain();
  const Plan plan = make_plan(network, single_tile(network), 2);
  const ActivationKinds kinds = activation_kinds(network, plan, 0, {});
  CHECK(kinds.maps + kinds.pre_activations + kinds.argmax + kinds.turns ==
        activation_arena(network, plan, 0, {}).bytes);
  constexpr Index kScalar = 4;
  constexpr Index kPreActivations = Index{2} * (16 * 16 * 16 + 2 * 32 * 8 * 8) * kScalar;
  constexpr Index kArgmax = Index{2} * 16 * 8 * 8;
  CHECK(kinds.pre_activations == kPreActivations);
  CHECK(kinds.argmax == kArgmax);
  constexpr Index kInputs = Index{2} * (16 * 16 * 16 + 16 * 8 * 8 + 2 * 32 * 8 * 8) * kScalar;
  CHECK(kinds.least == kPreActivations + kArgmax + kInputs);
  CHECK(kinds.maps + kinds.pre_activations + kinds.argmax < kinds.least);
}

namespace {

// Groups of the layers given, one tile, recomputed or not.
Partition grouped(const Network& network,
                  const std::vector<std::pair<int, int>>& groups,
                  bool recompute) {
  return make_partition(network, {.groups = groups, .recompute_all = recompute});
}

ActivationArena arena_of(const Network& network, const Partition& partition) {
  return activation_arena(network, make_plan(network, partition, 1), 0, {});
}

}  // namespace

TEST_CASE("of a recomputed group only what it reads and the argmax are kept") {
  const Network network = pooled_chain();
  const Partition partition = grouped(network, {{0, 1}, {2, 4}}, true);
  const Plan plan = make_plan(network, partition, 1);
  const ActivationArena arena = activation_arena(network, plan, 0, {});
  constexpr Index kScalar = 4;
  const ActivationKinds kinds = activation_kinds(network, plan, 0, {});
  const Index image = Index{16} * 18 * 18 * kScalar;
  const Index pooled = Index{16} * 10 * 10 * kScalar;
  const Index output = Index{16} * 8 * 8 * kScalar;
  CHECK(kinds.maps == image + pooled + output);
  CHECK(kinds.pre_activations == 0);
  CHECK(kinds.argmax == Index{16} * 8 * 8);
  CHECK(kinds.maps + kinds.pre_activations + kinds.argmax + kinds.turns == arena.bytes);
  // The convolution under the pool runs for its pre-activations alone, the last layer not at all.
  CHECK((arena.again[0].runs && !arena.again[0].output));
  CHECK((!arena.again[1].runs && !arena.again[4].runs));
  CHECK((arena.again[2].output && !arena.again[3].output));
}

TEST_CASE(
    "a map of a recomputed group comes back from its pre-activations once the group has run "
    "again") {
  const Network network = pooled_chain();
  const Partition partition = grouped(network, {{0, 1}, {2, 4}}, true);
  const Plan plan = make_plan(network, partition, 1);
  const ActivationArena arena = activation_arena(network, plan, 0, {});
  CHECK(of_map(arena.values, plan, 2).to == 3);
  CHECK(of_map(arena.recomputed, plan, 2).from == recompute_time(network, 4, 2));
  CHECK(of_map(arena.recomputed, plan, 2).to == recompute_time(network, 4, 3));
  CHECK(of_map(arena.restored, plan, 2).from == gradient_time(network, 3) + 1);
  CHECK(of_map(arena.restored, plan, 3).from == gradient_time(network, 4) + 1);
  CHECK(of_map(arena.recomputed, plan, 3).bytes == 0);  // the last layer keeps no pre-activations
}

TEST_CASE("without a backward pass a recomputed group is like any other") {
  const Network network = pooled_chain();
  const Partition kept = grouped(network, {{0, 1}, {2, 4}}, false);
  const Partition again = grouped(network, {{0, 1}, {2, 4}}, true);
  const auto bytes = [&](const Partition& partition) {
    return activation_arena(network, make_plan(network, partition, 1), 0, {.training = false})
        .bytes;
  };
  CHECK(bytes(kept) == bytes(again));
}

TEST_CASE("with every group recomputed, the peak is what groups read and the largest group") {
  Network network;
  network.image = {16, 10, 10};
  constexpr int kGroups = 6;
  for (int layer = 0; layer < 3 * kGroups; ++layer) {
    add_layer(network,
              Convolution{.filters = 16, .size = 1, .activation = Activation::Relu},
              {layer - 1});
  }
  std::vector<std::pair<int, int>> groups;
  groups.reserve(kGroups);
  for (int i = 0; i < kGroups; ++i) {
    groups.emplace_back(3 * i, 3 * i + 2);
  }
  constexpr Index kMap = Index{16} * 10 * 10 * 4;
  CHECK(arena_of(network, grouped(network, groups, false)).bytes == (3 * kGroups + 1 + 2) * kMap);
  // The image, the output of each group, and in each two maps inside and two gradients.
  CHECK(arena_of(network, grouped(network, groups, true)).bytes == (1 + kGroups + 2 + 2) * kMap);
}

TEST_CASE("a map that only passes to another recomputed group stays until that has run again") {
  Network network = tests::chain({16, 8, 8}, {tests::convolution(16, 3), MaxPool{2, 2, 0}});
  add_layer(network, Upsample{2, 1.0}, {1});
  add_layer(network, tests::convolution(16, 3), {2});
  add_layer(network, tests::convolution(16, 3), {3});
  const Partition partition = grouped(network, {{0, 1}, {2, 4}}, true);
  const Plan plan = make_plan(network, partition, 1);
  const ActivationArena arena = activation_arena(network, plan, 0, {});
  CHECK(of_map(arena.values, plan, 1).to == recompute_time(network, 4, 2));
  CHECK(of_map(arena.recomputed, plan, 1).from == recompute_time(network, 1, 0));
  CHECK(arena.recomputed_argmax[1].bytes > 0);
}
