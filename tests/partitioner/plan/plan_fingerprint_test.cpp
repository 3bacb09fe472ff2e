#include "partitioner/plan/plan_fingerprint.h"

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::fingerprint;
using partitioner::Network;
using partitioner::Partition;
using partitioner::Plan;

Plan plan_of(const tests::Cuts& cuts, Index batch) {
  const Network network =
      tests::chain({3, 12, 12}, {tests::convolution(4, 3), tests::convolution(6, 1)});
  return make_plan(network, tests::partition_of(network, 4, {{0, 0}, {1, 1}}, {cuts, cuts}), batch);
}

TEST_CASE("plans have the same fingerprint where everything in them is the same, and only there") {
  const std::string grid = fingerprint(plan_of(tests::grid(4), 2));
  CHECK(grid == fingerprint(plan_of(tests::grid(4), 2)));
  CHECK(grid != fingerprint(plan_of(tests::grid(4), 3)));
  CHECK(grid != fingerprint(plan_of(tests::rows_cut(4), 2)));
  Plan damaged = plan_of(tests::grid(4), 2);
  partitioner::Payload& payload = damaged.transfers.front().messages.back().payload;
  Region cells = payload.cells();
  cells.rows.end += 1;
  payload = partitioner::Payload::cells(cells);
  CHECK(grid != fingerprint(damaged));
}

}  // namespace
