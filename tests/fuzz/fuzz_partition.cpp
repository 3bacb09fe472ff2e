#include "tests/fuzz/fuzz_networks.h"
#include "tests/fuzz/harness.h"

#include "partitioner/base/errors.h"
#include "partitioner/partition/partition.h"
#include "partitioner/plan/plan.h"

namespace tessera::tests {

bool fuzz_partition(Bytes bytes) {
  using namespace partitioner;  // NOLINT(google-build-using-namespace)
  constexpr Index kBatch = 3;
  constexpr int kMostRanks = 32;  // more only take time
  try {
    Partition partition = parse_partition(text_of(bytes), "fuzz.toml");
    law(parse_partition(to_text(partition), "again.toml") == partition,
        "a partition is the same after writing and reading");
    const Network network = fuzz_network();
    partition.network = fingerprint(network);  // or hardly any would be of this network
    validate(partition, network, kBatch, "fuzz.toml");
    if (partition.ranks <= kMostRanks) {
      law(check(network, make_plan(network, partition, kBatch)).empty(),
          "a valid partition has a plan without faults");
    }
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
