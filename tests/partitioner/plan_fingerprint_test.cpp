#include "partitioner/plan_fingerprint.h"

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include <doctest/doctest.h>

namespace {

using partitioner::fingerprint;
using partitioner::Index;
using partitioner::Network;
using partitioner::Partition;
using partitioner::Plan;

Plan plan_of(const test::Cuts& cuts, Index batch) {
  const Network network =
      test::chain({3, 12, 12}, {test::convolution(4, 3), test::convolution(6, 1)});
  return make_plan(network, test::partition_of(network, 4, {{0, 0}, {1, 1}}, {cuts, cuts}), batch);
}

TEST_CASE("plans have the same fingerprint where everything in them is the same, and only there") {
  const std::string grid = fingerprint(plan_of(test::grid(4), 2));
  CHECK(grid == fingerprint(plan_of(test::grid(4), 2)));
  CHECK(grid != fingerprint(plan_of(test::grid(4), 3)));
  CHECK(grid != fingerprint(plan_of(test::rows_cut(4), 2)));
  Plan damaged = plan_of(test::grid(4), 2);
  damaged.exchanges.front().messages.back().region.rows.end += 1;
  CHECK(grid != fingerprint(damaged));
}

}  // namespace
