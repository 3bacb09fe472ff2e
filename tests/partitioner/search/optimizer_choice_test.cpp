// Whether the optimizer's state is replicated, where the state of each step is kept.

#include <doctest/doctest.h>

#include "partitioner/search/search.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

Network three_convolutions() {
  Network network;
  network.image = {16, 32, 32};
  for (int layer = 0; layer < 3; ++layer) {
    add_layer(network, Convolution{.filters = 64, .size = 3, .padding = 1}, {layer - 1});
  }
  return network;
}

struct KeptProblem {
  Network network = three_convolutions();
  ClusterProfile cluster;
  SearchOptions options;

  explicit KeptProblem(double link_bits_per_s) {
    cluster = equal_devices({.count = 4, .link_bits_per_s = link_bits_per_s});
    options.batch = 4;
    options.kernels = choose_kernels(network, KernelRule::Direct);
    options.cost.has_loss = false;
    options.cost.kept.is_on = true;
    options.chooses_optimizer = true;
  }
  [[nodiscard]] Candidate tiles() const {
    const Partition partition =
        make_partition(network, {.grid_rows = 2, .grid_cols = 2, .groups = {{0, 2}}, .ranks = 4});
    return evaluated(network, cluster, options, partition);
  }
  [[nodiscard]] Candidate best() const {
    return with_best_optimizer(network, cluster, options, tiles());
  }
};

OptimizerStates optimizer_of(const Candidate& candidate) {
  return candidate.partition.gradient_reduction.optimizer;
}

TEST_CASE("replicated state spares the wire second copies, and is chosen where that is slow") {
  const KeptProblem slow(1e6);
  const Candidate best = slow.best();
  CHECK(optimizer_of(best) == OptimizerStates::Replicated);
  CHECK(best.predicted_s() < slow.tiles().predicted_s());
  const KeptProblem fast(1e11);
  CHECK(optimizer_of(fast.best()) == OptimizerStates::Sharded);
}

TEST_CASE("without second copies, or where it is not asked for, state is sharded") {
  KeptProblem problem(1e6);
  problem.options.cost.kept.is_on = false;
  CHECK(optimizer_of(problem.best()) == OptimizerStates::Sharded);
  problem.options.cost.kept.is_on = true;
  problem.options.chooses_optimizer = false;
  CHECK(optimizer_of(problem.best()) == OptimizerStates::Sharded);
}

TEST_CASE("second copies take time on the wire, and only what does not hide adds to a step") {
  for (const double link : {1e6, 1e8, 1e11}) {
    KeptProblem kept(link);
    KeptProblem without = kept;
    without.options.cost.kept.is_on = false;
    CHECK(without.tiles().predicted_s() <= kept.tiles().predicted_s());
  }
  KeptProblem kept(1e6);
  KeptProblem without = kept;
  without.options.cost.kept.is_on = false;
  CHECK(kept.tiles().predicted_s() > 1.05 * without.tiles().predicted_s());
}

TEST_CASE("replicated state that does not fit is not chosen") {
  KeptProblem problem(1e6);
  const Index sharded = problem.tiles().most_bytes();
  CHECK(problem.best().most_bytes() > sharded);
  problem.options.memory_limit_bytes = sharded;
  CHECK(optimizer_of(problem.best()) == OptimizerStates::Sharded);
}

TEST_CASE("a search by itself chooses as well") {
  KeptProblem problem(1e6);
  problem.network.layers.resize(1);
  const SearchResult result = search_partition(problem.network, problem.cluster, problem.options);
  REQUIRE(!result.candidates.empty());
  const Candidate& best = result.candidates.front();
  SearchOptions fixed = problem.options;
  fixed.chooses_optimizer = false;
  const SearchResult other = search_partition(problem.network, problem.cluster, fixed);
  CHECK(best.predicted_s() <= other.candidates.front().predicted_s());
}

}  // namespace
