#include <algorithm>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "partitioner/balance/balance.h"
#include "partitioner/balance/move_flow.h"
#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

// Ends within a second or so, with or without the proof that nothing is better.
constexpr std::size_t kMostFlowArcs = 8000000;
constexpr std::size_t kMostCuts = 24;  // that are kept
constexpr double kBalanceRounding = 1e-12;

// An epoch time, and the least time of moving that it takes.
struct Point {
  double epoch_s = 0;
  double move_s = 0;
};

// Epoch times strictly between two points. Moving takes the longer the shorter an epoch is, so none
// of them takes less than the bound.
struct Interval {
  Point low;
  Point high;
  double bound = 0;
};

bool operator<(const Interval& a, const Interval& b) {
  return a.bound > b.bound;
}

class ExactBalance {
 public:
  explicit ExactBalance(const BalanceProblem& problem)
      : problem_(problem), limits_(problem), flow_(problem) {}

  Balance run() {
    const double longest_s = longest_epoch_s();
    const Point none = {0, kInfiniteRate};
    divide(none, {longest_s, least_move(longest_s)});
    double bound = kInfiniteRate;
    while (!open_.empty()) {
      const Interval interval = open_.top();
      if (best_ && interval.bound >= best_->total_s * (1 - kBalanceRounding)) {
        break;
      }
      if (flow_arcs_ >= kMostFlowArcs) {
        bound = interval.bound;
        break;
      }
      open_.pop();
      const double middle_s = middle_of(interval);
      const Point middle = {middle_s, least_move(middle_s)};
      divide(interval.low, middle);
      divide(middle, interval.high);
    }
    Balance best = with_fewest_moves();
    best.lower_bound_s = std::min(bound, best.total_s);
    return best;
  }

 private:
  // In which nothing needs to be moved, other than what a device cannot hold.
  [[nodiscard]] double longest_epoch_s() const {
    const Index samples = problem_.samples();
    double longest_s = 0;
    for (const BalanceDevice& device : problem_.devices) {
      const auto most = static_cast<double>(std::min(device.capacity, samples));
      longest_s = std::max(longest_s, device.seconds_per_sample * most);
    }
    return longest_s;
  }

  // The best, or as good a one that moves fewer samples.
  [[nodiscard]] Balance with_fewest_moves() {
    Balance fewest = balance_of(problem_, flow_.fewest_moves(best_times_));
    return fewest.total_s <= best_->total_s * (1 + kBalanceRounding) ? std::move(fewest)
                                                                     : *std::move(best_);
  }

  void divide(const Point& low, const Point& high) {
    const double next_s = limits_.next_epoch_s(low.epoch_s);
    if (high.move_s < kInfiniteRate && next_s < high.epoch_s * (1 - kBalanceRounding)) {
      open_.push({low, high, problem_.epochs * next_s + high.move_s});
    }
  }

  // A time inside at which a device can hold a further sample.
  [[nodiscard]] double middle_of(const Interval& interval) const {
    const double next_s = limits_.next_epoch_s(interval.low.epoch_s);
    const double middle_s = (next_s + limits_.previous_epoch_s(interval.high.epoch_s, false)) / 2;
    return std::max(next_s, limits_.previous_epoch_s(middle_s, true));
  }

  // Infinite where the devices cannot train on all samples within the time. What moves within the
  // least time may be the best so far.
  [[nodiscard]] double least_move(double epoch_s) {
    if (!limits_.is_enough(epoch_s)) {
      return kInfiniteRate;
    }
    double move_s = 0;
    for (const MoveCut& cut : cuts_) {
      move_s = least_move_s(problem_, cut, epoch_s, move_s);
    }
    while (move_s < kInfiniteRate) {
      MoveCut cut;
      flow_arcs_ += problem_.size() * problem_.size() + 1;
      if (auto moves = flow_.moves({move_s, epoch_s}, cut)) {
        Balance balance = balance_of(problem_, *std::move(moves));
        if (!best_ || balance.total_s < best_->total_s) {
          best_ = std::move(balance);
          // Its epoch may be shorter than asked for.
          best_times_ = {move_s, best_->epoch_s};
        }
        break;
      }
      const double needed_s = least_move_s(problem_, cut, epoch_s, move_s);
      expects(needed_s > move_s, "a cut that is too small needs more time");
      move_s = needed_s;
      keep(std::move(cut));
    }
    return move_s;
  }

  void keep(MoveCut cut) {
    if (cuts_.size() == kMostCuts) {
      cuts_.erase(cuts_.begin());
    }
    cuts_.push_back(std::move(cut));
  }

  const BalanceProblem& problem_;
  MoveLimits limits_;
  MoveFlow flow_;
  std::vector<MoveCut> cuts_;
  std::priority_queue<Interval> open_;
  std::optional<Balance> best_;
  BalanceTimes best_times_;    // that its moves keep to
  std::size_t flow_arcs_ = 0;  // of all flows
};

}  // namespace

Balance balance_exactly(const BalanceProblem& problem) {
  expect_solvable(problem);
  return ExactBalance(problem).run();
}

}  // namespace tessera::partitioner
