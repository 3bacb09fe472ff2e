// Plans of several replicas.

#include <algorithm>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "partitioner/plan/owned_buckets.h"
#include "partitioner/plan/plan.h"
#include "partitioner/plan/transfers.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): likewise

namespace {

constexpr std::uint64_t kReplicasCases = 60;
constexpr int kReplicas = 3;

struct ReplicasCase {
  Network network;
  Plan one;
  Plan all;
};

ReplicasCase random_replicas(std::uint64_t seed, const Synchronisation& sync) {
  tests::RandomCase random = tests::random_case(seed, 1 + static_cast<int>(seed % 3), {});
  random.partition.reader = Reader::every_rank();
  const Partition all = replicated(random.partition, {kReplicas, sync}, random.batch);
  return {random.network,
          make_plan(random.network, random.partition, random.batch),
          make_plan(random.network, all, kReplicas * random.batch)};
}

// Of messages between two ranks of one replica, the first of its ranks taken off.
std::vector<Message> of_replica(const std::vector<Message>& messages, int first, int ranks) {
  std::vector<Message> result;
  for (Message message : messages) {
    message.from -= first;
    message.to -= first;
    if (0 <= message.to && message.to < ranks) {
      result.push_back(message);
    }
  }
  return result;
}

TEST_CASE("a plan of replicas breaks no invariant, tied in any way") {
  for (std::uint64_t seed = 0; seed < kReplicasCases; ++seed) {
    for (const Synchronisation& sync : {Synchronisation{},
                                        Synchronisation{SyncMode::Local, 4},
                                        Synchronisation{SyncMode::ParameterRank, 2}}) {
      const ReplicasCase of = random_replicas(seed, sync);
      const auto violations = check(of.network, of.all);
      CHECK_MESSAGE(violations.empty(),
                    "seed ",
                    seed,
                    ": ",
                    violations.empty() ? std::string() : violations.front());
    }
  }
}

TEST_CASE("no message leaves a replica that is apart, but those about the loss") {
  for (std::uint64_t seed = 0; seed < kReplicasCases; ++seed) {
    for (const Synchronisation& sync :
         {Synchronisation{SyncMode::Local, 4}, Synchronisation{SyncMode::ParameterRank, 2}}) {
      const ReplicasCase of = random_replicas(seed, sync);
      for (const Transfer& transfer : of.all.transfers) {
        if (transfer.kind == TransferKind::Loss && sync.mode == SyncMode::Local) {
          continue;
        }
        for_each_message(of.all, transfer, [&](int from, int to, const partitioner::Payload&) {
          CHECK(of.all.copy_of(from) == of.all.copy_of(to));
        });
      }
    }
  }
}

TEST_CASE("each replica shares parameters and batch statistics as one that is alone") {
  for (std::uint64_t seed = 0; seed < kReplicasCases; ++seed) {
    const ReplicasCase of = random_replicas(seed, {SyncMode::Gossip, 0});
    for (int replica = 0; replica < kReplicas; ++replica) {
      const int first = replica * of.one.ranks;
      for (std::size_t i = 0; i < of.one.parameters.size(); ++i) {
        const ParameterPlan& alone = of.one.parameters[i];
        const ParameterPlan& together = of.all.parameters[i];
        CHECK(std::equal(alone.owned.begin(), alone.owned.end(), together.owned.begin() + first));
        CHECK(of_replica(together.messages, first, of.one.ranks) == alone.messages);
      }
      for (const Transfer& alone : of.one.transfers) {
        for (const Transfer& together : of.all.transfers) {
          if (alone.kind == TransferKind::BatchStatistics && together.kind == alone.kind &&
              together.subject == alone.subject) {
            CHECK(of_replica(together.messages, first, of.one.ranks) == alone.messages);
          }
        }
      }
    }
  }
}

TEST_CASE("peers own the same elements, and a message of them is smaller where it is compressed") {
  const tests::RandomCase random = tests::random_case(7, 2, {});
  Partition one = random.partition;
  one.reader = Reader::every_rank();
  one.gradient_reduction.compression = {.kind = Compression::Kind::TopK, .fraction = 0.01};
  const Plan plan = make_plan(random.network,
                              replicated(one, {kReplicas, {SyncMode::Local, 2}}, random.batch),
                              kReplicas * random.batch);
  CHECK(plan.gradient_reduction.compression == Compression::Exact);
  for (int rank = 0; rank < plan.ranks_of_copy(); ++rank) {
    const std::vector<int> peers = peers_of(plan, rank);
    REQUIRE(peers.size() == kReplicas);
    const OwnedBucket owned = all_owned(plan, rank);
    CHECK((owned.elements == 0 || owned.bytes < owned.elements * 4));
    for (const int peer : peers) {
      CHECK(all_owned(plan, peer).elements == owned.elements);
      CHECK(all_owned(plan, peer).bytes == owned.bytes);
    }
  }
}

TEST_CASE("compressed gradients and values of a plan take fewer bytes") {
  const tests::RandomCase random = tests::random_case(11, 4, {});
  const auto bytes_of = [&](const Compression& compression) {
    Partition partition = random.partition;
    partition.gradient_reduction.compression = compression;
    const Plan plan = make_plan(random.network, partition, random.batch);
    Index bytes = 0;
    for (const BucketPlan& bucket : plan.buckets) {
      const Transfer& values = plan.transfers[bucket.values];
      for_each_message(plan, values, [&](int, int, const partitioner::Payload& payload) {
        bytes += message_bytes(plan, values, payload, 4);
      });
    }
    return bytes;
  };
  const Index exact = bytes_of(Compression::Exact);
  REQUIRE(exact > 0);
  CHECK(bytes_of({.kind = Compression::Kind::TopK, .fraction = 0.1}) < exact / 4);
  CHECK(bytes_of({.kind = Compression::Kind::Sign}) < exact / 8);
  CHECK(bytes_of({.kind = Compression::Kind::LowRank, .rank = 1}) < exact);
}

}  // namespace
