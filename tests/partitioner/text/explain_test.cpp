#include "partitioner/text/explain.h"

#include <algorithm>
#include <sstream>

#include "tests/support/random_cluster.h"
#include "tests/support/widest_line.h"
#include <doctest/doctest.h>

#include "partitioner/cost/simulation.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;

// Two convolutions with batch normalisation, a pool between them.
Network small_network() {
  Network network;
  network.image = {3, 32, 32};
  Convolution convolution;
  convolution.filters = 16;
  convolution.size = 3;
  convolution.padding = 1;
  convolution.batch_normalize = true;
  add_layer(network, convolution, {kImage});
  add_layer(network, MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, convolution, {1});
  return network;
}

}  // namespace

TEST_CASE("where the time goes adds up to the predicted time of the step") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    SearchOptions options;
    options.batch = draw.between(1, 4);
    options.cost.passes = draw.between(1, 2);
    options.candidates = 3;
    const Network network = tests::random_network(draw, {.batch = options.batch, .most_layers = 6});
    const ClusterProfile cluster =
        tests::random_cluster(draw, static_cast<int>(draw.between(1, 4)));
    options.counts_memory = false;
    for (const Candidate& candidate : search_partition(network, cluster, options).candidates) {
      const TimeShares time = time_shares(network, cluster, options, candidate.partition);
      CHECK(time.step_s() == doctest::Approx(candidate.predicted_s()));
      CHECK(time.redundant_s <= time.computing_s());
      CHECK(time.waiting_s <= time.step_s() - time.computing_s() + 1e-12);
    }
  }
}

TEST_CASE("with too many devices to simulate, shares add up to the modelled time") {
  const Network network = small_network();
  const ClusterProfile cluster = equal_devices({.count = 64});
  REQUIRE(!is_simulable(network, 64));
  SearchOptions options;
  options.batch = 4;
  const SearchResult result = search_partition(network, cluster, options);
  REQUIRE(!result.candidates.empty());
  const Candidate& best = result.candidates.front();
  CHECK(!best.simulated_s);
  CHECK(time_shares(network, cluster, options, best.partition).step_s() ==
        doctest::Approx(best.modelled_s));
}

TEST_CASE("one device waits for nobody") {
  const Network network = small_network();
  const TimeShares time = time_shares(network, equal_devices({}), {}, single_tile(network));
  CHECK(time.computing_s() > 0);
  CHECK(time.step_s() == doctest::Approx(time.computing_s()));
  CHECK(time.waiting_s < 1e-12 * time.step_s());  // rounding
  CHECK(std::string(what_limits(time)) == "computing");
}

TEST_CASE("what is sent in a step is counted by device and direction") {
  PricedStep step;
  step.ranks = 3;
  step.transfers = {{{{0, 1, 100}, {2, 1, 30}}, false}, {{{1, 0, 50, 4}}, true}, {{{0, 2, 1000}}}};
  for (const TransferIndex started :
       {TransferIndex(0), TransferIndex(1)}) {  // nobody needs the third
    step.actions.push_back(
        {.action = {.kind = Action::Kind::Start, .transfer = started}, .seconds = {}});
    step.actions.push_back(
        {.action = {.kind = Action::Kind::Finish, .transfer = started}, .seconds = {}});
  }
  const StepTraffic traffic = step_traffic(step);
  CHECK(traffic.sent.messages == 6);
  CHECK(traffic.sent.bytes == 180);
  CHECK(traffic.busiest_bytes == 130);  // into device 1
}

TEST_CASE("a plan's maps are part of what its step sends") {
  const Network network = small_network();
  const ClusterProfile cluster = equal_devices({.count = 2});
  SearchOptions options;
  options.batch = 2;
  options.counts_memory = false;
  Shorthand shorthand;
  shorthand.grid_cols = 2;
  const ExplainedPlan plan =
      explained(network, cluster, options, make_partition(network, shorthand));
  const PlanTotals totals =
      plan_totals(network, make_plan(network, plan.partition, options.batch), 4);
  REQUIRE(plan.traffic);
  const Traffic& maps = totals.sum.forward_in;
  CHECK(plan.traffic->sent.messages > 2 * maps.messages);
  CHECK(plan.traffic->sent.bytes > 2 * maps.bytes);
  CHECK(plan.traffic->busiest_bytes * 2 >= plan.traffic->sent.bytes);
  CHECK(time_text(plan).starts_with("Predicted step: about "));
  CHECK(traffic_text(plan).starts_with("Sent in a step: "));
}

TEST_CASE("what limits is what takes most beside computing, from a tenth of the step on") {
  TimeShares time;
  time.forward_s = 1;
  time.maps_s = 0.05;
  CHECK(std::string(what_limits(time)) == "computing");
  time.maps_s = 0.3;
  time.gradients_s = 0.2;
  CHECK(std::string(what_limits(time)) == "exchange of maps");
  time.gradients_s = 0.4;
  CHECK(std::string(what_limits(time)) == "gradient reduction");
}

TEST_CASE("what was chosen comes first, at the time that the search predicted for it") {
  for (std::uint64_t seed = 200; seed < 210; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    SearchOptions options;
    options.batch = 4;
    options.counts_memory = false;
    const Network network = tests::random_network(draw, {.batch = options.batch, .most_layers = 6});
    const ClusterProfile cluster = equal_devices({.count = 4});
    const SearchResult result = search_partition(network, cluster, options);
    const auto plans =
        compare_with_baselines(network, cluster, options, result.candidates.front().partition);
    CHECK(plans.size() >= 2);
    CHECK(plans.front().name == "chosen");
    double least = kInfiniteRate;
    for (const Candidate& candidate : result.candidates) {
      least = std::min(least, candidate.predicted_s());
    }
    CHECK(plans.front().time.step_s() == doctest::Approx(least));
  }
}

TEST_CASE("baselines send gradients as the chosen partition does") {
  SearchOptions options;
  options.batch = 4;
  options.counts_memory = false;
  options.gradient_reduction.compression = Compression::Half;
  const Network network = small_network();
  const ClusterProfile cluster = equal_devices({.count = 4});
  const Partition chosen = search_partition(network, cluster, options).candidates.front().partition;
  const auto plans = compare_with_baselines(network, cluster, options, chosen);
  CHECK(plans.size() > 4);  // grid and images among them
  for (const ExplainedPlan& plan : plans) {
    CAPTURE(plan.name);
    CHECK(plan.partition.gradient_reduction == options.gradient_reduction);
  }
}

TEST_CASE("another number of devices: what fits, and text and JSON of it") {
  const Network network = small_network();
  ClusterProfile cluster = equal_devices({.count = 3});
  SearchOptions options;
  options.batch = 6;
  const auto free = compare_device_counts(network, cluster, options);
  REQUIRE(free.size() == 5);
  for (std::size_t i = 0; i < free.size(); ++i) {
    CHECK(free[i].devices == static_cast<int>(i) + 1);
    REQUIRE(free[i].best);
  }
  options.memory_limit_bytes = *free[2].best->most_bytes;
  const auto limited = compare_device_counts(network, cluster, options);
  CHECK(!limited[0].best);
  CHECK(limited[2].best);
  const Partition partition =
      search_partition(network, cluster, options).candidates.front().partition;
  Explanation explanation;
  explanation.plans = compare_with_baselines(network, cluster, options, partition);
  explanation.counts = limited;
  const std::string text = explanation_table(explanation);
  CHECK(tests::widest_line(text) <= 100);
  CHECK(text.find("nothing fits") != std::string::npos);
  CHECK(text.find("gradient reduction") != std::string::npos);
  CHECK(explanation_json(explanation).find("\"best\":null") != std::string::npos);
}

TEST_CASE("all-reduce algorithms are compared with each other and with what was probed") {
  const Network network = small_network();
  ClusterProfile cluster = equal_devices({.count = 5});
  cluster.all_reduces = {{2, 4096, 0.5}, {5, 1048576, 2.0}};
  const Index parameters = learnt_elements(network, 0) + learnt_elements(network, 2);
  CHECK(parameters == 16 * (3 * 9 + 2) + 16 * (16 * 9 + 2));
  CHECK(learnt_elements(network, 1) == 0);

  const auto all_reduces = compare_all_reduce_algorithms(network, cluster, {});
  REQUIRE(all_reduces.size() == std::size(kAllReduceAlgorithms));
  CHECK(all_reduces.front().algorithm == AllReduceAlgorithm::Owners);
  // All of it fits into a bucket: the share of a rank of each of the others, there and back.
  const double wire_s = 2 * 4.0 / 5 * static_cast<double>(parameters * kSingleBytes) /
                        cluster.device(0).send_bytes_per_s;
  for (const auto& [algorithm, seconds] : all_reduces) {
    CAPTURE(name_of(algorithm));
    CHECK(seconds > wire_s);
  }
  const auto halves =
      compare_all_reduce_algorithms(network, cluster, {.compression = Compression::Half});
  CHECK(halves.front().seconds < all_reduces.front().seconds);

  Explanation explanation;
  explanation.all_reduces = all_reduces;
  explanation.measured_all_reduces = compare_measured_all_reduces(cluster);
  REQUIRE(explanation.measured_all_reduces.size() == 2);
  CHECK(explanation.measured_all_reduces[0].measured == cluster.all_reduces[0]);
  CHECK(explanation.measured_all_reduces[0].predicted_s ==
        all_reduce_seconds(cluster, AllReduceAlgorithm::Owners, {0, 1}, 4096, kInfiniteRate));
  const std::string text = explanation_table(explanation);
  CHECK(tests::widest_line(text) <= 100);
  CHECK(text.find("owners, as done here") != std::string::npos);
  CHECK(text.find("2000.0") != std::string::npos);
  const std::string json = explanation_json(explanation);
  CHECK(json.find("\"algorithm\":\"ring\"") != std::string::npos);
  CHECK(json.find("\"seconds\":0.5") != std::string::npos);
}
