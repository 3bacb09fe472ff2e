// The profile of a cluster as a run asks for it.

#include "engine/session/planning.h"

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

TEST_CASE("a profile of more devices than ranks has what a process takes on all of them") {
  const tests::TemporaryFolder folder;
  partitioner::ClusterProfile cluster = engine::described_cluster({}, 3, {});
  for (Index i = 0; i < 3; ++i) {
    cluster.devices[static_cast<std::size_t>(i)].program_bytes = 10 * (i + 1);
  }
  const auto file = folder / "cluster.toml";
  tests::put_bytes(file, to_text(cluster));
  partitioner::PartitionRequest request;
  request.cluster = file.string();
  CHECK(engine::profiled_program_bytes(request, 2) == std::vector<Index>{10, 20, 30});
  CHECK(engine::profiled_cluster(request, 2).value().size() == 2);
  CHECK(engine::profiled_program_bytes(request, 4).empty());
  CHECK_FALSE(engine::profiled_cluster(request, 4));
  request.cluster.clear();
  CHECK_FALSE(engine::profiled_cluster(request, 1));
}
