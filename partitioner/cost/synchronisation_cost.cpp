#include "partitioner/cost/synchronisation_cost.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "partitioner/cost/transfer_model.h"
#include "partitioner/plan/owned_buckets.h"

namespace tessera::partitioner {

namespace {

// Messages of an exchange, counted and timed.
class Messages {
 public:
  explicit Messages(const ClusterProfile& cluster)
      : load_(cluster), sent_(static_cast<std::size_t>(cluster.size())), received_(sent_) {}

  void add(int from, int to, double bytes) {
    load_.add({from, to, bytes});
    sent_[static_cast<std::size_t>(from)] += bytes;
    received_[static_cast<std::size_t>(to)] += bytes;
  }
  void add_all_to_all(const std::vector<int>& ranks, double bytes) {
    for (const int from : ranks) {
      for (const int to : ranks) {
        if (from != to) {
          add(from, to, bytes);
        }
      }
    }
  }
  // The seconds of one round, whose messages all start together.
  double finish_round() {
    const double seconds = load_.empty() ? 0 : load_.seconds();
    load_.clear();
    return seconds;
  }
  [[nodiscard]] double bytes() const {
    double sum = 0;
    for (const double bytes : sent_) {
      sum += bytes;
    }
    return sum;
  }
  [[nodiscard]] double busiest_bytes() const {
    return std::max(*std::max_element(sent_.begin(), sent_.end()),
                    *std::max_element(received_.begin(), received_.end()));
  }

 private:
  TransferLoad load_;
  std::vector<double> sent_;
  std::vector<double> received_;
};

double owned_bytes(const Plan& plan, int rank) {
  return static_cast<double>(all_owned(plan, rank).bytes);
}

// Each adds up its share and sends that to the others; a compressed message goes to all.
double average_seconds(const Plan& plan, Messages& messages) {
  double seconds = 0;
  const bool exact = plan.sync_compression == Compression::Exact;
  for (int round = 0; round < (exact ? 2 : 1); ++round) {
    for (int rank = 0; rank < plan.ranks_of_copy(); ++rank) {
      const double bytes = owned_bytes(plan, rank) / (exact ? plan.replicas.count : 1);
      messages.add_all_to_all(peers_of(plan, rank), bytes);
    }
    seconds += messages.finish_round();
  }
  return seconds;
}

// Gradients to the first replica, its update, values back.
double parameter_rank_seconds(const Plan& plan, const ClusterProfile& cluster, Messages& messages) {
  double seconds = 0;
  double update_s = 0;
  for (const bool back : {false, true}) {
    for (int rank = 0; rank < plan.ranks_of_copy(); ++rank) {
      const double bytes = owned_bytes(plan, rank);
      for (const int peer : peers_of(plan, rank)) {
        if (peer != rank) {
          messages.add(back ? rank : peer, back ? peer : rank, bytes);
        }
      }
      update_s = std::max(update_s,
                          static_cast<double>(all_owned(plan, rank).elements) /
                              cluster.device(rank).updated_weights_per_s);
    }
    seconds += messages.finish_round();
  }
  return seconds + (plan.replicas.run_ahead() ? update_s : 0);  // else it counts as computing
}

// The pairings of a round-robin tournament, in which each two are paired once: their mean.
double gossip_seconds(const Plan& plan, Messages& messages, int& pairings) {
  const int count = plan.replicas.count;
  const int seats = count + count % 2;  // who sits beside an empty one has a rest
  pairings = seats - 1;
  double seconds = 0;
  for (int round = 0; round < pairings; ++round) {
    for (int i = 0; i < seats / 2; ++i) {
      const int a = i == 0 ? seats - 1 : (round + i) % pairings;
      const int b = (round - i + pairings) % pairings;
      if (std::max(a, b) >= count) {
        continue;
      }
      for (int rank = 0; rank < plan.ranks_of_copy(); ++rank) {
        const std::vector<int> peers = peers_of(plan, rank);
        messages.add_all_to_all(
            {peers[static_cast<std::size_t>(a)], peers[static_cast<std::size_t>(b)]},
            owned_bytes(plan, rank));
      }
    }
    seconds += messages.finish_round();
  }
  return seconds / pairings;
}

}  // namespace

double SynchronisationCost::added_s(double replica_s) const {
  return hidden ? std::max(exchange_s - replica_s, 0.0)
                : exchange_s / static_cast<double>(period_steps);
}

SynchronisationCost synchronisation_cost(const Plan& plan, const ClusterProfile& cluster) {
  const Synchronisation& sync = plan.replicas.sync;
  SynchronisationCost cost;
  Messages messages(cluster);
  int exchanges = 1;  // that are counted
  switch (sync.mode) {
    case SyncMode::Local:
    case SyncMode::PostLocal:
      cost.exchange_s = average_seconds(plan, messages);
      cost.period_steps = sync.steps;
      cost.in_each_step_first = sync.mode == SyncMode::PostLocal;
      break;
    case SyncMode::ParameterRank:
      cost.exchange_s = parameter_rank_seconds(plan, cluster, messages);
      cost.hidden = sync.steps > 0;
      break;
    case SyncMode::Gossip:
      cost.exchange_s = gossip_seconds(plan, messages, exchanges);
      break;
    case SyncMode::EveryStep:
      break;
  }
  cost.bytes = std::llround(messages.bytes() / exchanges);
  cost.busiest_bytes = std::llround(messages.busiest_bytes() / exchanges);
  return cost;
}

}  // namespace tessera::partitioner
