#include "partitioner/memory/memory.h"

#include <tuple>

#include "tests/support/memory_use.h"
#include <doctest/doctest.h>

#include "partitioner/base/layout.h"
#include "partitioner/memory/message_memory.h"
#include "partitioner/plan/plan_totals.h"

namespace {

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

// Two convolutions of 3 -> 8 -> 20 channels on 12 x 10 cells, the second normalised, then a pool
// and 5 classes.
Network small_network() {
  Network network;
  network.image = {3, 12, 10};
  add_layer(network,
            Convolution{.filters = 8, .size = 3, .padding = 1, .activation = Activation::Mish},
            {kImage});
  add_layer(
      network, Convolution{.filters = 20, .size = 3, .padding = 1, .batch_normalize = true}, {0});
  add_layer(network, AvgPool{}, {1});
  add_layer(network, Connected{.outputs = 5}, {2});
  return network;
}

Partition tiled(const Network& network, Index rows, Index cols) {
  return make_partition(network, {.grid_rows = rows, .grid_cols = cols, .groups = {{0, 1}}});
}

Index learnt_values(const Network& network) {
  Index values = 0;
  for (int layer = 0; layer < network.size(); ++layer) {
    const LayerParameters of = layer_parameters(network, layer);
    for (const ParameterShape& shape : {of.weight, of.bias, of.scale}) {
      values += shape.channels * shape.row;
    }
  }
  return values;
}

}  // namespace

TEST_CASE("a channel block is as wide as few channels, then eight, then sixteen") {
  CHECK(channel_block(1) == 1);
  CHECK(channel_block(3) == 3);
  CHECK(channel_block(4) == 4);
  CHECK(channel_block(5) == 8);
  CHECK(channel_block(8) == 8);
  CHECK(channel_block(9) == 16);
  CHECK(channel_block(100) == 16);
}

TEST_CASE("only the last channel block of a buffer is padded, and an empty one takes nothing") {
  const Range two{4, 6};
  const Range three{-1, 2};
  CHECK(blocked_volume({two, {0, 3}, three, three}) == 2 * 3 * 9);
  CHECK(blocked_volume({two, {8, 13}, three, three}) == 2 * 8 * 9);
  CHECK(blocked_volume({two, {0, 17}, three, three}) == 2 * 32 * 9);
  CHECK(blocked_volume({two, {3, 3}, three, three}) == 0);
  CHECK(blocked_volume({}) == 0);
}

TEST_CASE("the memory of a single tile is what its shapes say") {
  const Network network = small_network();
  const Plan plan = make_plan(network, single_tile(network), 2);
  const MemoryUse use = tests::planned_memory(network, plan, 0, {});
  constexpr Index kLearnt = Index{28} * 8 + Index{74} * 20 + Index{21} * 5;
  CHECK(learnt_values(network) == kLearnt);
  CHECK(use.weights == 4 * (kLearnt + 40));  // and running mean and variance
  CHECK(use.gradients == 4 * kLearnt);
  CHECK(use.optimizer == 4 * kLearnt);
  CHECK(use.messages == 0);
  CHECK(use.workspace == 0);
  // The image and map 0 have a border of one cell; layers 0 and 1 keep their pre-activations. Map
  // 1, its gradient and that of map 0 take turns in the same place: the pool's backward pass does
  // not want map 1, and its gradient becomes that of the pre-activations where these are.
  const Index image = Index{2} * 3 * 14 * 12;
  const Index first = Index{2} * 8 * 14 * 12;
  const Index second = Index{2} * 32 * 12 * 10;
  const Index vectors = Index{2} * (32 + 8);
  const Index kept = Index{2} * 8 * 12 * 10 + Index{2} * 32 * 12 * 10;
  const Index pooled_gradient = Index{2} * 32;
  CHECK(use.activations == 4 * (image + first + second + vectors + kept + pooled_gradient));
  CHECK(use.total() == use.weights + use.gradients + use.optimizer + use.activations);
}

TEST_CASE("without training there are neither gradients nor optimizer state") {
  const Network network = small_network();
  const Plan plan = make_plan(network, single_tile(network), 2);
  const MemoryUse training = tests::planned_memory(network, plan, 0, {});
  const MemoryUse forward = tests::planned_memory(network, plan, 0, {.training = false});
  CHECK(forward.gradients == 0);
  CHECK(forward.optimizer == 0);
  CHECK(forward.weights == training.weights);
  CHECK(forward.activations < training.activations);
}

TEST_CASE("options scale what they are about") {
  const Network network = small_network();
  const Plan plan = make_plan(network, tiled(network, 2, 2), 8);
  const MemoryUse single = tests::planned_memory(network, plan, 1, {});
  const MemoryUse twice = tests::planned_memory(network, plan, 1, {.scalar_bytes = 8});
  CHECK(twice.weights == 2 * single.weights);
  CHECK(twice.activations == 2 * single.activations);
  const MemoryUse adam =
      tests::planned_memory(network, plan, 1, {.trained = {.adam = true}, .workspace_bytes = 100});
  CHECK(adam.optimizer == 2 * single.optimizer);
  CHECK(adam.total() == single.total() + single.optimizer + 100);
  const MemoryUse averaged =
      tests::planned_memory(network, plan, 1, {.trained = {.averages = true}});
  Index statistics = 0;
  for (const auto& parameter : plan.parameters) {
    for (const Range& run : parameter.owned[1]) {
      statistics += is_running_statistic(parameter) ? run.size() : 0;
    }
  }
  CHECK(averaged.optimizer == 2 * single.optimizer + 4 * statistics);
  const MemoryUse process =
      tests::planned_memory(network, plan, 1, {.picture_batches = 2, .program_bytes = 1000});
  CHECK(process.pictures == 2 * 4 * image_region(network, plan, 1).volume());
  CHECK(process.of_network() == single.total() + process.pictures);
  CHECK(process.total() == process.of_network() + 1000);
  const MemoryUse image = tests::planned_memory(network, plan, 1, {.image_gradient = true});
  CHECK(image.activations >= single.activations);
}

TEST_CASE("a rank without work takes less of the program, and never less than nothing") {
  const Network network = small_network();
  Partition partition = tiled(network, 1, 1);
  partition.ranks = 2;
  const Plan plan = make_plan(network, partition, 8);
  const auto of = [&](Index program_bytes) {
    return planned_memory_of_ranks(network, plan, {.program_bytes = program_bytes}, {}, {});
  };
  CHECK(of(kWorkBytes + 1000)[0].program == kWorkBytes + 1000);
  CHECK(of(kWorkBytes + 1000)[1].total() == 1000);
  CHECK(of(1000)[1].total() == 0);
}

TEST_CASE("pictures are held by those who read them, each what it requires") {
  const Network network = small_network();
  Partition partition = tiled(network, 2, 1);
  const auto pictures = [&](int rank) {
    const Plan plan = make_plan(network, partition, 3);
    return tests::planned_memory(network, plan, rank, {.picture_batches = 1}).pictures;
  };
  const Index whole = 4 * whole_map(network, kImage, 3).volume();
  CHECK(pictures(0) < whole);
  CHECK(pictures(0) + pictures(1) > whole);  // both want the rows at the cut
  partition.reader = Reader::rank(1);
  CHECK(pictures(0) == 0);
  CHECK(pictures(1) == whole);
}

TEST_CASE("what a test keeps of its pictures counts on rank 0, whoever reads") {
  const Network network = small_network();
  Partition partition = tiled(network, 2, 1);
  for (const Reader& reader : {Reader::every_rank(), Reader::rank(1)}) {
    partition.reader = reader;
    const Plan plan = make_plan(network, partition, 3);
    const auto data = [&](int rank) {
      return tests::planned_memory(network, plan, rank, {.data_bytes = 500, .judging_bytes = 9000})
          .data;
    };
    CHECK(data(0) == (reader.reads(0) ? 9500 : 9000));
    CHECK(data(1) == 500);
  }
}

TEST_CASE(
    "decoding counts where a rank has a part of a picture, data sets and caches where it reads") {
  const Network network = small_network();
  Partition partition = tiled(network, 1, 1);
  partition.ranks = 2;
  const auto use = [&](int rank) {
    const MemoryOptions options{.decoding_bytes = 1000, .data_bytes = 500, .cache_bytes = 70};
    return tests::planned_memory(network, make_plan(network, partition, 3), rank, options);
  };
  CHECK(use(0).decoding == 1000);
  CHECK(use(0).data == 500);
  CHECK(use(0).cache == 70);
  CHECK(use(0).total() == use(0).of_network() + 1570);
  CHECK(use(1).decoding == 0);  // idle
  CHECK(use(1).data == 500);
  CHECK(use(1).total() == 570);
  CHECK(use(1).of_network() == 0);
  partition.reader = Reader::rank(1);
  CHECK(use(0).total() == use(0).of_network());
  CHECK(use(1).decoding == 1000);
}

TEST_CASE("optimizer state is sharded: together the ranks hold that of one device") {
  const Network network = small_network();
  for (const auto& [rows, cols] : {std::pair<Index, Index>{1, 1}, {1, 2}, {2, 3}, {7, 1}}) {
    const Plan plan = make_plan(network, tiled(network, rows, cols), 3);
    Index together = 0;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      together += tests::planned_memory(network, plan, rank, {}).optimizer;
    }
    CHECK(together == 4 * learnt_values(network));
  }
}

TEST_CASE("an idle rank uses no memory") {
  const Network network = small_network();
  Partition partition = tiled(network, 2, 2);
  partition.ranks = 5;
  const Plan plan = make_plan(network, partition, 4);
  CHECK(tests::planned_memory(network, plan, 4, {}).total() == 0);
}

TEST_CASE("each message has room at both of its ends") {
  const Network network = small_network();
  const Plan plan = make_plan(network, tiled(network, 2, 3), 12);
  Index cells = 0;
  for (const Transfer& transfer : plan.transfers) {
    for (const Message& message : transfer.messages) {
      if (transfer.kind == TransferKind::FeatureMap && transfer.subject != kImage) {
        cells += message.payload.cells().volume() * (message.from == message.to ? 1 : 2);
      }
    }
  }
  for (const ParameterPlan& parameter : plan.parameters) {
    for (const Message& message : parameter.messages) {
      cells += message.payload.element_run().size() * 2;
    }
  }
  Index bytes = 0;
  const std::vector<Index> statistics = plan_totals(network, plan, 4).batch_statistics_in_bytes;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    bytes += tests::planned_memory(network, plan, rank, {}).messages;
    bytes -= statistics[static_cast<std::size_t>(rank)];
  }
  CHECK(bytes == 4 * cells);
}

TEST_CASE("batch statistics come from every other rank, for normalised layers only") {
  const Network network = small_network();
  const Plan plan = make_plan(network, tiled(network, 2, 2), 4);
  // Layer 1 alone is normalised, and has 20 channels.
  CHECK(plan_totals(network, plan, 4).batch_statistics_in_bytes.front() == 3 * 20 * 8 * (3 + 2));
  const Plan alone = make_plan(network, single_tile(network), 4);
  CHECK(plan_totals(network, alone, 4).batch_statistics_in_bytes.front() == 0);
}

TEST_CASE("what is sent is received, in every group and over all") {
  const Network network = small_network();
  for (int trial = 0; trial < 18; ++trial) {
    Partition partition = tiled(network, 1 + trial % 3, 1 + trial / 3 % 3);
    partition.reader = trial / 9 == 0 ? Reader::every_rank() : Reader::rank(0);
    partition.groups[0].reduce_to_owner = trial % 2 == 0 ? std::vector<int>{0} : std::vector<int>{};
    const Plan plan = make_plan(network, partition, 5);
    const PlanTotals totals = plan_totals(network, plan, 4);
    for (const Totals& group : totals.group_totals) {
      CHECK(group.forward_in == group.forward_out);
      CHECK(group.backward_in == group.backward_out);
    }
    Traffic in;
    Traffic out;
    for (std::size_t rank = 0; rank < totals.gradient_reduction_in.size(); ++rank) {
      in.bytes += totals.gradient_reduction_in[rank].bytes;
      out.bytes += totals.gradient_reduction_out[rank].bytes;
    }
    CHECK(in == out);
    CHECK(totals.sum.forward_in == totals.sum.forward_out);
    CHECK(totals.sum.work.multiply_adds - totals.sum.work.redundant ==
          plan_totals(network, make_plan(network, single_tile(network), 5), 4)
              .sum.work.multiply_adds);
    if (trial % 2 == 0 && partition.ranks > 1) {
      CHECK(totals.group_totals[0].backward_in.messages > 0);  // the reduction to owners
    }
  }
}
