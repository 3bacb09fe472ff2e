#include "partitioner/cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/random_cluster.h"
#include <doctest/doctest.h>

#include "partitioner/cost/layer_times.h"
#include "partitioner/cost/step_prices.h"
#include "partitioner/memory/activation_arena.h"
#include "partitioner/plan/plan_totals.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;

Convolution convolution_3x3(Index filters) {
  Convolution shape;
  shape.filters = filters;
  shape.size = 3;
  shape.padding = 1;
  return shape;
}

ConvolutionTask task(ConvolutionKernel kernel, const Region& output) {
  return {convolution_3x3(64), 32, kernel, ConvolutionPass::Forward, output, {}};
}

double seconds(const DeviceProfile& device, const ConvolutionPoint& point) {
  return convolution_seconds(device, measured_task(point, ConvolutionPass::Forward));
}

ConvolutionPoint point_3x3(Index channels, Index side, double forward_s) {
  return {ConvolutionKernel::Direct, channels, 64, 3, 1, 1, side, side, forward_s, 1, 1};
}

}  // namespace

TEST_CASE("a direct convolution is counted in whole blocks of channels") {
  const Region all{{0, 2}, {0, 64}, {0, 10}, {0, 7}};
  CHECK(counted_flops(task(ConvolutionKernel::Direct, all)) == 2.0 * 2 * 64 * 32 * 9 * 70);
  Region part = all;
  part.channels = {15, 33};  // touches three blocks of 16
  CHECK(counted_flops(task(ConvolutionKernel::Direct, part)) == 2.0 * 2 * 48 * 32 * 9 * 70);
  CHECK(counted_flops(task(ConvolutionKernel::Direct, {})) == 0);
}

TEST_CASE("a step of a transposed convolution multiplies as one of the opposite convolution does") {
  const auto products = [](Index side, const Operation& operation) {
    Network network;
    network.image = {16, side, side};
    add_layer(network, convolution_3x3(16), {kImage});
    add_layer(network, operation, {0});
    const Region all = whole_map(network, 1, 2);
    return step_multiply_adds(network, 1, {}, all, all);
  };
  CHECK(products(8, Deconvolution{.filters = 16, .size = 2, .stride = 2}) ==
        products(16, Convolution{.filters = 16, .size = 2, .stride = 2}));
}

TEST_CASE("a Winograd convolution is counted in whole tiles on global coordinates") {
  const auto flops = [](const Range& rows) {
    return counted_flops(task(ConvolutionKernel::Winograd4, {{0, 1}, {0, 64}, rows, {0, 4}}));
  };
  CHECK(flops({0, 4}) == 2.0 * 64 * 32 * 9 * 16);
  CHECK(flops({0, 5}) == 2 * flops({0, 4}));
  CHECK(flops({3, 5}) == 2 * flops({0, 4}));
  CHECK(flops({4, 8}) == flops({0, 4}));
}

TEST_CASE("the way back to the data is counted in the tiles of the cells that windows reach") {
  const auto flops = [](const Range& rows, const Range& in_rows) {
    return counted_flops({convolution_3x3(64),
                          32,
                          ConvolutionKernel::Winograd4,
                          ConvolutionPass::BackwardData,
                          {{0, 1}, {0, 64}, rows, {0, 4}},
                          {{0, 1}, {0, 32}, in_rows, {0, 4}}});
  };
  const double tile = 2.0 * 64 * 32 * 9 * 16;
  CHECK(flops({0, 4}, {0, 5}) == 2 * tile);
  CHECK(flops({4, 8}, {3, 9}) == 3 * tile);
  CHECK(flops({8, 12}, {7, 12}) == 2 * tile);
  // Seconds of a layer are of the same count: twice those of the forward pass, at the same rate.
  DeviceProfile device;
  device.winograd_flops_per_s = 1e9;
  const auto kernels = all_passes(ConvolutionKernel::Winograd4);
  const Region rows{{0, 1}, {0, 64}, {0, 4}, {0, 4}};
  const LayerSeconds last =
      layer_seconds(tests::chain({32, 12, 4}, {convolution_3x3(32), convolution_3x3(64)}),
                    1,
                    kernels,
                    device,
                    rows,
                    rows);
  CHECK(last.backward_data_s == doctest::Approx(2 * last.forward_s));
}

TEST_CASE("what filters take for themselves is not counted again for each cell") {
  // 0.2 s, and 1 ms for each cell.
  DeviceProfile device;
  device.convolutions = {point_3x3(32, 20, 0.6), point_3x3(32, 40, 1.8), point_3x3(64, 40, 9)};
  CHECK(seconds(device, point_3x3(32, 30, 0)) == doctest::Approx(0.2 + 0.9));
  CHECK(seconds(device, point_3x3(32, 80, 0)) == doctest::Approx(0.2 + 6.4));
  CHECK(seconds(device, point_3x3(32, 10, 0)) == doctest::Approx(0.2 + 0.1));

  SUBCASE("time grows no faster than work beyond what was measured") {
    device.convolutions[0].forward_s = 0.1;
    CHECK(seconds(device, point_3x3(32, 80, 0)) == doctest::Approx(4 * 1.8));
    CHECK(seconds(device, point_3x3(32, 10, 0)) == doctest::Approx(0.1 / 4));
  }
  SUBCASE("and never stops growing") {
    device.convolutions[0].forward_s = 2;  // the clock was wrong
    CHECK(seconds(device, point_3x3(32, 80, 0)) == doctest::Approx(1.8 + 3 * 1.8 / 4));
  }
}

TEST_CASE("what an input takes for itself is not shared out among the filters") {
  // For each cell 0.8 ms of the input, and 0.3 of each block of filters.
  DeviceProfile device;
  const auto point = [](Index filters, Index side) {
    ConvolutionPoint of = point_3x3(32, side, 0);
    of.filters = filters;
    of.rows = 1;
    of.forward_s = static_cast<double>(side) * (8 + 3 * static_cast<double>(filters) / 16) / 1e4;
    return of;
  };
  device.convolutions = {point(64, 100), point(64, 400), point(32, 100), point(32, 200)};
  ConvolutionTask task = measured_task(point(64, 300), ConvolutionPass::Forward);
  const auto seconds_of = [&](const Range& filters) {
    task.output.channels = filters;
    return convolution_seconds(device, task);
  };
  CHECK(seconds_of({0, 64}) == doctest::Approx(point(64, 300).forward_s));
  CHECK(seconds_of({16, 64}) == doctest::Approx(point(48, 300).forward_s));
  CHECK(seconds_of({16, 57}) == doctest::Approx(point(48, 300).forward_s));  // in whole blocks
  CHECK(seconds_of({32, 64}) == doctest::Approx(point(32, 300).forward_s));
  CHECK(seconds_of({48, 64}) == doctest::Approx(point(16, 300).forward_s));

  SUBCASE("where filters are no whole blocks, a block that is begun counts as one") {
    device.convolutions[0].filters = device.convolutions[1].filters = task.shape.filters = 60;
    CHECK(seconds_of({16, 60}) == doctest::Approx(point(48, 300).forward_s));
  }
  SUBCASE("where all filters were tried only") {
    device.convolutions.resize(2);
    CHECK(seconds_of({0, 32}) == doctest::Approx(seconds_of({0, 64}) / 2).epsilon(0.2));
  }
}

TEST_CASE("a convolution that was measured takes as long as it did") {
  DeviceProfile device;
  device.convolutions = {point_3x3(32, 20, 0.5), point_3x3(64, 20, 0.7), point_3x3(32, 40, 1.5)};
  for (const ConvolutionPoint& point : device.convolutions) {
    CHECK(seconds(device, point) == doctest::Approx(point.forward_s).epsilon(1e-9));
  }
}

TEST_CASE("an activation takes its exponential forward, and for every slope that needs its input") {
  DeviceProfile device;
  device.exponential = {1e3, 1e2};
  const auto other_s = [&](Activation activation, bool normalized) {
    Convolution layer = convolution_3x3(16);
    layer.activation = activation;
    layer.batch_normalize = normalized;
    const Network network = tests::chain({16, 2, 2}, {layer});
    const Region all = whole_map(network, 0, 1);
    return layer_seconds(network, 0, {}, device, all, all);
  };
  constexpr double kBytes = 16 * 2 * 2 * 4;
  const LayerSeconds swish = other_s(Activation::Swish, false);
  CHECK(swish.other_forward_s == doctest::Approx(kBytes / 1e3));
  CHECK(swish.other_backward_s == doctest::Approx(kBytes / 1e2));
  // Statistics of gradients take the slopes, and normalised values for them.
  CHECK(other_s(Activation::Swish, true).other_backward_s == doctest::Approx(2 * kBytes / 1e2));
  const LayerSeconds logistic = other_s(Activation::Logistic, false);
  CHECK(logistic.other_forward_s == doctest::Approx(kBytes / 1e3));
  CHECK(logistic.other_backward_s == 0);
  CHECK(other_s(Activation::Leaky, true).total() == 0);
}

TEST_CASE("a pool that runs with the layer before it does not pass over the map between") {
  DeviceProfile device;
  device.pool = device.activate = {1e3, 1e3};
  const MaxPool pool{.size = 2, .stride = 2};
  const Network fused = tests::chain({16, 4, 4}, {convolution_3x3(16), pool});
  const Network apart = tests::chain({16, 4, 4}, {convolution_3x3(16), pool, pool});
  const auto of = [&](const Network& network, int layer) {
    const Region all = whole_map(network, layer, 1);
    return layer_seconds(network, layer, {}, device, all, all);
  };
  constexpr double kPooled_s = 16 * 2 * 2 * 4 / 1e3;
  CHECK(of(fused, 1).other_forward_s == doctest::Approx(kPooled_s));
  CHECK(of(fused, 0).other_backward_s == doctest::Approx(2 * kPooled_s));
  // A pool behind a pool reads what is there.
  CHECK(of(apart, 2).other_forward_s == doctest::Approx(kPooled_s / 4 + kPooled_s));
}

TEST_CASE("where tiles of 2x2 were not measured they multiply more often than tiles of 4x4") {
  DeviceProfile device;
  device.winograd_flops_per_s = 1e9;
  const Region all{{0, 1}, {0, 64}, {0, 8}, {0, 8}};
  const double four_s = convolution_seconds(device, task(ConvolutionKernel::Winograd4, all));
  const double two_s = convolution_seconds(device, task(ConvolutionKernel::Winograd2, all));
  CHECK(two_s == doctest::Approx(four_s * 16 / 9));
}

TEST_CASE("the rate of a shape between two that were measured lies between theirs") {
  DeviceProfile device;
  device.convolutions = {point_3x3(16, 20, 1), point_3x3(64, 20, 2)};  // the second twice as fast
  const double one = seconds(device, point_3x3(32, 20, 0));
  CHECK(one > 1.0);  // at the rate of the second
  CHECK(one < 2.0);  // at the rate of the first
}

TEST_CASE("what is worked out once for alike tiles and devices is what each of them takes") {
  Draw draw(11);
  const Network network = tests::chain(
      {3, 40, 40}, {convolution_3x3(64), MaxPool{2, 2, 0}, tests::convolution(20, 3, 2)});
  ClusterProfile cluster = equal_devices({.count = 3});
  cluster.devices[1].convolutions = {point_3x3(3, 20, 0.5), point_3x3(3, 40, 1.5)};
  cluster.devices[2].name = "same";
  std::vector<ConvolutionKernels> kernels(network.layers.size());
  kernels[0] = all_passes(ConvolutionKernel::Winograd4);
  LayerTimes times(network, kernels, cluster);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto layer = static_cast<int>(draw.between(0, network.size() - 1));
    const auto rank = static_cast<int>(draw.between(0, 2));
    const auto part = [&draw](Index extent) {
      const Index begin = draw.between(0, extent - 1);
      return Range{begin, draw.between(begin + 1, extent)};
    };
    const MapShape& shape = network.shape(layer);
    const Region computed{{0, 2}, part(shape.channels), part(shape.rows), part(shape.cols)};
    const Region backward = draw.between(0, 3) == 0 ? Region{} : computed;
    CAPTURE(layer);
    const LayerSeconds known = times.seconds(layer, rank, computed, backward);
    const LayerSeconds own = layer_seconds(network,
                                           layer,
                                           kernels[static_cast<std::size_t>(layer)],
                                           cluster.device(rank),
                                           computed,
                                           backward);
    CHECK(known.forward_s == own.forward_s);
    CHECK(known.backward_data_s == own.backward_data_s);
    CHECK(known.backward_weights_s == own.backward_weights_s);
    CHECK(known.other_forward_s == own.other_forward_s);
    CHECK(known.other_backward_s == own.other_backward_s);
  }
}

TEST_CASE("every algorithm takes no less than a sum over all ranks must") {
  Draw draw(5);
  for (int trial = 0; trial < 50; ++trial) {
    const int count = static_cast<int>(draw.between(2, 9));
    const ClusterProfile cluster = equal_devices({.count = count, .message_s = 0});
    std::vector<int> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    const double bytes = static_cast<double>(draw.between(1, 1 << 24));
    const double bound = 2 * bytes * (count - 1) / count / cluster.link.bytes_per_s;
    for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
      CAPTURE(name_of(algorithm));
      CHECK(all_reduce_seconds(cluster, algorithm, ranks, bytes, kInfiniteRate) >= bound);
    }
    // On equal devices the ring's bytes meet the bound; a star's centre carries all of them.
    const double latencies = 2 * (count - 1) * cluster.link.latency_s;
    const double copies =
        2 * bound * cluster.link.bytes_per_s / cluster.devices[0].copied_bytes_per_s;
    CHECK(all_reduce_seconds(cluster, AllReduceAlgorithm::Ring, ranks, bytes, kInfiniteRate) ==
          doctest::Approx(bound + latencies + copies));
    CHECK(all_reduce_seconds(cluster, AllReduceAlgorithm::Star, ranks, bytes, kInfiniteRate) >=
          2 * bytes * (count - 1) / cluster.link.bytes_per_s);
  }
}

TEST_CASE("messages turned round take as long as if they were sent so") {
  constexpr int kDevices = 4;
  int unlike = 0;  // directions
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const ClusterProfile cluster = tests::random_cluster(draw, kDevices);
    TransferLoad sent(cluster);
    TransferLoad turned(cluster);
    for (int message = 0; message < 6; ++message) {
      const auto from = static_cast<int>(draw.between(0, kDevices - 1));
      const auto to = static_cast<int>(draw.between(0, kDevices - 1));
      const auto bytes = static_cast<double>(draw.between(1, 1 << 20));
      sent.add({from, to, bytes});
      turned.add({to, from, bytes});
    }
    CHECK(sent.reversed_seconds() == doctest::Approx(turned.seconds()));
    CHECK(turned.reversed_seconds() == doctest::Approx(sent.seconds()));
    unlike += sent.seconds() != turned.seconds() ? 1 : 0;
  }
  CHECK(unlike > 0);
}

TEST_CASE("buckets are summed one after the other") {
  const ClusterProfile cluster = equal_devices({.count = 4});
  const auto sum = [&cluster](double bytes, double bucket) {
    return all_reduce_seconds(cluster, AllReduceAlgorithm::Ring, {0, 1, 2, 3}, bytes, bucket);
  };
  CHECK(sum(3e6, 1e6) == doctest::Approx(3 * sum(1e6, 1e6)));
  CHECK(sum(2.5e6, 1e6) == doctest::Approx(2 * sum(1e6, 1e6) + sum(0.5e6, 1e6)));
}

TEST_CASE("parameters are shared in the messages that the plan has") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const int ranks = static_cast<int>(1 + seed % 6);
    tests::RandomCase random = tests::random_case(seed, ranks, {.of_detectors = true});
    if (seed % 2 == 1) {
      random.partition.gradient_reduction.compression = Compression::Half;
      random.partition.gradient_reduction.optimizer = OptimizerStates::Sharded;
    }
    const Plan plan = make_plan(random.network, random.partition, random.batch);
    const PlanTotals totals = plan_totals(random.network, plan, 4);
    std::vector<Traffic> out(static_cast<std::size_t>(ranks));
    const PricedStep step =
        priced_step(random.network, plan, equal_devices({.count = ranks}), {.passes = 3});
    for (const PricedAction& priced : step.actions) {
      if (priced.action.kind != Action::Kind::Start) {
        continue;
      }
      const auto& transfer = step.transfers[priced.action.transfer];
      for (const Parcel& parcel : transfer.parcels) {
        if (transfer.bulk) {
          out[static_cast<std::size_t>(parcel.from)].messages += parcel.messages;
          out[static_cast<std::size_t>(parcel.from)].bytes += static_cast<Index>(parcel.bytes);
        }
      }
    }
    CHECK(out == totals.gradient_reduction_out);
  }
}

TEST_CASE("the norm of gradients takes a part of what updating takes, and a message each way") {
  for (const int ranks : {1, 4}) {
    tests::RandomCase random = tests::random_case(7, ranks, {});
    const ClusterProfile cluster = equal_devices({.count = ranks});
    const auto cost = [&] {
      return step_cost(random.network, random.partition, random.batch, cluster, {});
    };
    const auto computed = [&] {
      const Plan plan = make_plan(random.network, random.partition, random.batch);
      double sum = 0;
      for (const PricedAction& priced : priced_step(random.network, plan, cluster, {}).actions) {
        sum += priced.action.phase == Phase::GradientNorm && !priced.seconds.empty()
                   ? priced.seconds.front()
                   : 0;
      }
      return sum;
    };
    const StepCost plain = cost();
    CHECK(plain.norm_s == 0);
    CHECK(computed() == 0);
    random.network.max_gradient_norm = 1;
    const StepCost clipping = cost();
    CHECK(clipping.norm_s > loss_seconds(cluster));
    CHECK(clipping.total() == doctest::Approx(plain.total() + clipping.norm_s));
    CHECK(computed() > 0);
    if (ranks == 1) {
      CHECK(computed() == doctest::Approx(clipping.norm_s));
    }
  }
}

TEST_CASE("recomputing adds the time of what runs again, and changes nothing else") {
  int slower = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    const int ranks = static_cast<int>(1 + seed % 5);
    const tests::RandomCase random = tests::random_case(seed, ranks, {.of_detectors = true});
    const ClusterProfile cluster = tests::random_cluster(draw, ranks);
    const CostOptions options{.passes = 3};
    const auto cost_of = [&](const Partition& partition) {
      return step_cost(random.network, partition, random.batch, cluster, options);
    };
    const StepCost again = cost_of(random.partition);
    const StepCost kept = cost_of(tests::without_recomputation(random.partition));
    double added_s = 0;
    for (std::size_t g = 0; g < again.groups.size(); ++g) {
      const GroupCost& group = again.groups[g];
      CHECK(kept.groups[g].recompute_s == 0);
      CHECK((random.partition.groups[g].recompute || group.recompute_s == 0));
      for (std::size_t rank = 0; rank < group.ranks.size(); ++rank) {
        const RankSeconds& of = group.ranks[rank];
        CHECK(of.recompute_s <= group.recompute_s);
        CHECK(of.recompute_s <= (of.forward_s + of.other_s) * (1 + 1e-9));
        CHECK(of.total() - of.recompute_s == doctest::Approx(kept.groups[g].ranks[rank].total()));
      }
      added_s += 3 * group.recompute_s;
    }
    CHECK(again.total() == doctest::Approx(kept.total() + added_s).epsilon(1e-9));
    slower += added_s > 0 ? 1 : 0;
  }
  CHECK(slower > 50);
}

namespace {

// Of layers that the rank has no cell of there is nothing to run, whatever is said of them: it has
// no map that a pool could be fused with.
void check_counted(const Network& network,
                   const GroupGeometry& group,
                   const std::vector<RecomputedLayer>& counted,
                   int rank,
                   const ActivationArena& arena) {
  for (int layer = group.first; layer <= group.last; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    if (group.tiles_of(layer)[static_cast<std::size_t>(rank)].computed.empty()) {
      continue;
    }
    const bool is_fused = layer > 0 && arena.fused_pool[at - 1] == layer;
    // Where a rank has no part in a reduction to owners, it may fuse a pool that others cannot.
    if (!is_fused && arena.fused_pool[at] == kNoLayer && fusable_pool(network, layer) == kNoLayer) {
      const RecomputedLayer& of_layer = counted[at - static_cast<std::size_t>(group.first)];
      CHECK(arena.again[at].runs == of_layer.runs);
      CHECK(arena.again[at].output == of_layer.output);
    }
  }
}

}  // namespace

TEST_CASE("what the model counts as running again is what an execution runs") {
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    CAPTURE(seed);
    const int ranks = static_cast<int>(1 + seed % 5);
    tests::RandomCase random = tests::random_case(seed, ranks, {.of_detectors = true});
    for (Group& group : random.partition.groups) {
      group.recompute = true;
    }
    const Plan plan = make_plan(random.network, random.partition, random.batch);
    for (int rank = 0; rank < ranks; ++rank) {
      const ActivationArena arena = activation_arena(random.network, plan, rank, {});
      for (const GroupGeometry& group : plan.groups) {
        check_counted(random.network, group, recomputed_work(random.network, group), rank, arena);
      }
    }
  }
}
