#include "partitioner/search/shortlist.h"

#include <utility>
#include <vector>

#include "tests/support/random_cluster.h"
#include "tests/support/random_network.h"
#include "tests/support/sanitized.h"
#include <doctest/doctest.h>

#include "partitioner/cost/simulation.h"
#include "partitioner/search/partition_search.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

struct Found {
  double seconds = 0;
  Index choices = 0;
};

Found fastest(const Network& network,
              const ClusterProfile& cluster,
              const SearchOptions& options,
              ChoiceScope scope) {
  PartitionSearch search(network, cluster, options, {}, std::move(scope));
  const std::vector<Partition> partitions = search.cheapest({}, 1);
  REQUIRE(!partitions.empty());
  return {step_cost(network, partitions.front(), options.batch, cluster, options.cost).total(),
          search.effort().groups};
}

}  // namespace

TEST_CASE("among many devices a few choices have the fastest of all partitions") {
  const int cases = tests::kSanitized ? 3 : 40;
  Index all_choices = 0;
  Index left_choices = 0;
  for (int i = 0; i < cases; ++i) {
    CAPTURE(i);
    tests::Draw draw(tests::case_seed(i, 64));
    SearchOptions options;
    options.batch = draw.between(1, 16);
    options.cost.passes = draw.between(1, 2);
    options.longest_group = 4;
    options.reader = draw.chance(0.5) ? Reader::every_rank() : Reader::rank(0);
    const Network network = tests::random_network(
        draw, {.batch = options.batch, .most_layers = 8, .of_detectors = true, .of_graphs = true});
    const auto devices = static_cast<int>(draw.between(33, 128));
    const ClusterProfile cluster =
        i % 2 == 0 ? equal_devices({.count = devices}) : tests::random_cluster(draw, devices);
    if (is_simulable(network, devices)) {
      continue;  // all choices are left
    }
    PartitionFigures figures(network, cluster, options);
    const Found full = fastest(network, cluster, options, {});
    Shortlists shortlists(network, cluster, options, figures);
    const Found left = fastest(network, cluster, options, shortlists.within(1));
    CHECK(left.seconds == doctest::Approx(full.seconds).epsilon(1e-9));
    all_choices += full.choices;
    left_choices += left.choices;
  }
  CHECK(left_choices < all_choices / 2);
}
