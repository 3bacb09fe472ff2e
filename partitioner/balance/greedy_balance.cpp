#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "partitioner/balance/balance.h"
#include "partitioner/balance/move_limits.h"

namespace tessera::partitioner {

namespace {

constexpr int kEpochTimes = 64;  // that are tried

// Moves for one epoch time.
class GreedyMoves {
 public:
  GreedyMoves(const BalanceProblem& problem, double epoch_s)
      : problem_(problem),
        is_enough_(MoveLimits(problem).is_enough(epoch_s)),
        sent_(problem.size()),
        received_(problem.size()) {
    const MoveLimits limits(problem);
    for (std::size_t i = 0; i < problem.size(); ++i) {
      spare_.push_back(limits.on(i, epoch_s) - limits.before(i));
    }
  }

  // False where the receivers cannot take all that is too much elsewhere.
  bool run() {
    if (!is_enough_) {
      return false;
    }
    std::vector<std::size_t> senders;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      if (spare_[i] < 0) {
        senders.push_back(i);
      }
    }
    std::stable_sort(senders.begin(), senders.end(), [this](std::size_t a, std::size_t b) {
      return surplus_s(a) > surplus_s(b);
    });
    for (const std::size_t from : senders) {
      while (spare_[from] < 0) {
        const auto to = first_to_have(from);
        if (to == problem_.size()) {
          return false;
        }
        move(from, to);
      }
    }
    return true;
  }

  [[nodiscard]] std::vector<SampleMove> moves() const {
    std::vector<SampleMove> moves;
    for (const auto& [pair, count] : counts_) {
      moves.push_back(
          {static_cast<int>(pair.first), static_cast<int>(pair.second), count * problem_.shard});
    }
    return moves;
  }

 private:
  [[nodiscard]] double surplus_s(std::size_t device) const {
    return static_cast<double>(-spare_[device]) * problem_.devices[device].seconds_per_sample;
  }

  [[nodiscard]] double bytes_of(Index shards) const {
    return static_cast<double>(shards * problem_.shard) * problem_.sample_bytes;
  }

  // What a receiver takes from a sender at once: a share, so that several receivers work at a time.
  [[nodiscard]] Index portion(std::size_t from, std::size_t to) const {
    constexpr Index kShares = 8;
    const Index most = std::min(-spare_[from], spare_[to]);
    return std::min(most, std::max<Index>(1, -spare_[from] / kShares));
  }

  [[nodiscard]] std::size_t first_to_have(std::size_t from) const {
    std::size_t best = problem_.size();
    double best_s = kInfiniteRate;
    for (std::size_t to = 0; to < problem_.size(); ++to) {
      if (to == from || spare_[to] <= 0) {
        continue;
      }
      const double bytes = bytes_of(portion(from, to));
      const auto earlier = counts_.find({from, to});
      const double on_link = bytes + (earlier == counts_.end() ? 0 : bytes_of(earlier->second));
      const LinkProfile& link = problem_.link(from, to);
      const double seconds =
          std::max({(sent_[from] + bytes) / problem_.devices[from].send_bytes_per_s,
                    (received_[to] + bytes) / problem_.devices[to].receive_bytes_per_s,
                    link.latency_s + on_link / link.bytes_per_s});
      if (best == problem_.size() || seconds < best_s) {
        best = to;
        best_s = seconds;
      }
    }
    return best;
  }

  void move(std::size_t from, std::size_t to) {
    const Index count = portion(from, to);
    const double bytes = bytes_of(count);
    spare_[from] += count;
    spare_[to] -= count;
    sent_[from] += bytes;
    received_[to] += bytes;
    counts_[{from, to}] += count;
  }

  const BalanceProblem& problem_;
  bool is_enough_;
  std::vector<Index> spare_;  // shards that a device can still take; negative: has too many
  std::vector<double> sent_;
  std::vector<double> received_;
  std::map<std::pair<std::size_t, std::size_t>, Index> counts_;
};

}  // namespace

Balance balance_greedily(const BalanceProblem& problem) {
  expect_solvable(problem);
  double unmoved_s = 0;  // of an epoch
  double rate = 0;       // of all devices together, samples per second
  double fullest_s = 0;  // of an epoch if every device is full
  for (const BalanceDevice& device : problem.devices) {
    const double each_s = device.seconds_per_sample;
    const auto held = static_cast<double>(std::min(device.capacity, problem.samples()));
    unmoved_s = std::max(unmoved_s, each_s * static_cast<double>(device.samples));
    fullest_s = std::max(fullest_s, each_s * held);
    rate += 1 / each_s;
  }
  const double even_s = static_cast<double>(problem.samples()) / rate;
  std::vector<double> times = {fullest_s};
  for (int i = 0; i <= kEpochTimes; ++i) {
    times.push_back(even_s + (unmoved_s - even_s) * i / kEpochTimes);
  }
  std::optional<Balance> best;
  for (const double epoch_s : times) {
    GreedyMoves moves(problem, epoch_s);
    if (moves.run()) {
      Balance balance = balance_of(problem, moves.moves());
      if (!best || balance.total_s < best->total_s) {
        best = std::move(balance);
      }
    }
  }
  return *std::move(best);
}

}  // namespace tessera::partitioner
