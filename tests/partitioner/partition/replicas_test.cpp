#include "partitioner/partition/replicas.h"

#include "tests/support/random_network.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "partitioner/partition/partition.h"
#include "partitioner/plan/plan.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): likewise

namespace {

constexpr std::uint64_t kCases = 60;

// A random partition of one replica, and of several that are cut like it.
struct Repeated {
  tests::RandomCase one;
  Partition all;
  Index batch = 1;  // of all
};

Repeated repeated(std::uint64_t seed, const Synchronisation& sync) {
  tests::Draw draw(seed + 1000);
  const int count = static_cast<int>(draw.between(1, 4));
  const int ranks = static_cast<int>(draw.between(1, 4));
  Repeated result{tests::random_case(seed, ranks, {}), {}, 1};
  result.one.partition.reader = Reader::every_rank();
  if (sync.mode != SyncMode::EveryStep) {
    result.one.partition.gradient_reduction.optimizer = OptimizerStates::Sharded;
  }
  result.batch = count * result.one.batch;
  result.all = replicated(result.one.partition, {count, sync}, result.one.batch);
  return result;
}

TEST_CASE("ways to synchronise are found by their text") {
  for (const Synchronisation& sync : {Synchronisation{},
                                      Synchronisation{SyncMode::Local, 1},
                                      Synchronisation{SyncMode::PostLocal, 16},
                                      Synchronisation{SyncMode::ParameterRank, 0},
                                      Synchronisation{SyncMode::Gossip, 0}}) {
    CHECK(parse_synchronisation(to_text(sync)) == sync);
  }
  CHECK(to_text(Synchronisation{SyncMode::ParameterRank, 2}) == "parameter-rank:2");
  for (const char* text : {"",
                           "every",
                           "every-step:1",
                           "local",
                           "local:",
                           "local:0",
                           "local:-1",
                           "local:1.5",
                           "local:8 ",
                           "local:99999999999999999999",
                           "post-local",
                           "parameter-rank",
                           "parameter-rank:-1",
                           "parameter-rank:65",
                           "gossip:2",
                           "Local:2"}) {
    CHECK_MESSAGE(
        tests::has(tests::input_error_of([&] { (void)parse_synchronisation(text); }), text), text);
  }
}

TEST_CASE("a replica is cut as the partition that was repeated") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Repeated of = repeated(seed, {SyncMode::Local, 4});
    CHECK_MESSAGE(one_replica(of.all) == of.one.partition, "seed ", seed);
  }
}

TEST_CASE("repeated partitions are valid, tied in any way") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    for (const SyncMode mode : {SyncMode::EveryStep, SyncMode::Gossip}) {
      const Repeated of = repeated(seed, {mode, 0});
      CHECK_NOTHROW(validate(of.all, of.one.network, of.batch, "test"));
      CHECK(parse_partition(to_text(of.all), "test") == of.all);
    }
  }
}

TEST_CASE("replicas that are apart are alike, with images of their own, and read themselves") {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Repeated of = repeated(seed, {SyncMode::Local, 4});
    if (of.all.replicas.count == 1 || of.all.ranks < 2) {
      continue;
    }
    ++tried;
    const auto refused = [&](const Partition& partition, Index batch) {
      return !tests::input_error_of([&] {
                validate(partition, of.one.network, batch, "test");
              }).empty();
    };
    Partition other = of.all;
    std::swap(other.groups.back().ranks.front(), other.groups.back().ranks.back());
    CHECK(refused(other, of.batch));
    Partition reader = of.all;
    reader.reader = Reader::rank(0);
    CHECK(refused(reader, of.batch));
    Partition gossip = of.all;
    gossip.replicas.sync = {SyncMode::Gossip, 0};
    gossip.gradient_reduction.compression = Compression::Half;
    CHECK(refused(gossip, of.batch));
    Partition uneven = of.all;
    uneven.replicas.count = of.all.ranks + 1;
    CHECK(refused(uneven, of.batch));
    CHECK(refused(of.all, of.batch + 1));
    Network clipping = of.one.network;
    clipping.max_gradient_norm = 1;
    CHECK(!tests::input_error_of([&] { validate(of.all, clipping, of.batch, "test"); }).empty());
  }
  CHECK(tried > 10);
}

}  // namespace
