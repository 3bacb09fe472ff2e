#include "partitioner/balance/class_balance.h"

#include <algorithm>
#include <cmath>
#include <lemon/network_simplex.h>
#include <lemon/preflow.h>
#include <lemon/smart_graph.h>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "partitioner/balance/class_program.h"
#include "partitioner/balance/linear_program.h"
#include "partitioner/balance/move_limits.h"
#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

using Digraph = lemon::SmartDigraph;
using Counts = std::vector<std::vector<Index>>;  // [device][class]

// The whole numbers around a computed number of samples: a whole one is taken as it is.
struct Between {
  Index least = 0;
  Index most = 0;
};

Between whole_numbers_around(double samples) {
  constexpr double kRounding = 1e-5;
  const double nearest = std::round(samples);
  if (std::abs(samples - nearest) < kRounding * std::max(1.0, samples * 1e-3)) {
    return {static_cast<Index>(nearest), static_cast<Index>(nearest)};
  }
  return {static_cast<Index>(std::floor(samples)), static_cast<Index>(std::ceil(samples))};
}

// Whole numbers next to the divided ones, that leave each class as many samples as it has: a flow
// from devices to classes. Where there is a choice, the nearest are taken.
class WholeSamples {
 public:
  WholeSamples(const std::vector<std::vector<double>>& divided, const ClassSamples& classes)
      : samples_(classes.all()) {
    std::vector<Digraph::Node> nodes;
    for (std::size_t c = 0; c < classes.classes(); ++c) {
      nodes.push_back(graph_.addNode());
      const Digraph::Arc arc = graph_.addArc(nodes.back(), sink_);
      least_[arc] = most_[arc] = classes.of_class(c);
    }
    for (const std::vector<double>& of_device : divided) {
      const Digraph::Node device = graph_.addNode();
      add(source_, device, std::accumulate(of_device.begin(), of_device.end(), 0.0));
      arcs_.emplace_back();
      for (std::size_t c = 0; c < of_device.size(); ++c) {
        arcs_.back().push_back(add(device, nodes[c], of_device[c]));
      }
    }
  }

  Counts find() {
    auto counts = solve();
    if (!counts) {
      widen();
      counts = solve();
    }
    expects(counts.has_value(), "whole numbers near the divided ones");
    return *std::move(counts);
  }

 private:
  Digraph::Arc add(Digraph::Node from, Digraph::Node to, double samples) {
    constexpr double kUnit = 1000;  // of costs, for all that lies between two whole numbers
    const Digraph::Arc arc = graph_.addArc(from, to);
    const Between between = whole_numbers_around(samples);
    least_[arc] = between.least;
    most_[arc] = between.most;
    cost_[arc] = static_cast<Index>(std::round(kUnit * (0.5 - (samples - std::floor(samples)))));
    return arc;
  }

  // Rounding may have made a number whole that has to give way.
  void widen() {
    for (Digraph::ArcIt arc(graph_); arc != lemon::INVALID; ++arc) {
      if (graph_.target(arc) != sink_) {
        least_[arc] = std::max<Index>(0, least_[arc] - 1);
        most_[arc] += 1;
      }
    }
  }

  std::optional<Counts> solve() {
    lemon::NetworkSimplex<Digraph, Index, Index> flow(graph_);
    flow.lowerMap(least_).upperMap(most_).costMap(cost_);
    flow.stSupply(source_, sink_, samples_);
    if (flow.run() != decltype(flow)::OPTIMAL) {
      return std::nullopt;
    }
    Counts counts;
    for (const auto& of_device : arcs_) {
      counts.emplace_back();
      for (const Digraph::Arc arc : of_device) {
        counts.back().push_back(flow.flow(arc));
      }
    }
    return counts;
  }

  Digraph graph_;
  Digraph::ArcMap<Index> least_{graph_};
  Digraph::ArcMap<Index> most_{graph_};
  Digraph::ArcMap<Index> cost_{graph_};
  Digraph::Node source_ = graph_.addNode();
  Digraph::Node sink_ = graph_.addNode();
  std::vector<std::vector<Digraph::Arc>> arcs_;  // [device][class]
  Index samples_;
};

// Which pairs of devices move what, given what leaves and what arrives: class by class as much as
// the links let pass within a time, of which the least is looked for.
class ClassRoutes {
 public:
  ClassRoutes(const BalanceProblem& problem, const ClassSamples& classes, const Counts& after)
      : problem_(problem), limits_(problem), classes_(classes), after_(after) {
    order_.resize(classes.classes());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
      return moved(a) > moved(b);
    });
  }

  [[nodiscard]] std::vector<ClassMove> run() const {
    constexpr double kPrecision = 1.01;
    constexpr double kLongest = 1e300;
    double low_s = device_s();
    if (auto moves = within(low_s)) {
      return *std::move(moves);
    }
    double high_s = std::max(low_s, least_latency_s());
    auto best = within(high_s);
    while (!best && high_s < kLongest) {
      low_s = high_s;
      high_s *= 2;
      best = within(high_s);
    }
    if (!best) {
      return within(kInfiniteRate).value();
    }
    while (low_s > 0 && high_s > low_s * kPrecision) {
      const double middle_s = (low_s + high_s) / 2;
      if (auto moves = within(middle_s)) {
        best = std::move(moves);
        high_s = middle_s;
      } else {
        low_s = middle_s;
      }
    }
    return *std::move(best);
  }

 private:
  [[nodiscard]] Index leaving(std::size_t device, std::size_t of_class) const {
    return std::max<Index>(0, classes_.counts[device][of_class] - after_[device][of_class]);
  }
  [[nodiscard]] Index arriving(std::size_t device, std::size_t of_class) const {
    return std::max<Index>(0, after_[device][of_class] - classes_.counts[device][of_class]);
  }
  [[nodiscard]] Index moved(std::size_t of_class) const {
    Index sum = 0;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      sum += leaving(i, of_class);
    }
    return sum;
  }

  // Before that no device is done with what it sends and receives.
  [[nodiscard]] double device_s() const {
    double least_s = 0;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      Index out = 0;
      Index in = 0;
      for (std::size_t c = 0; c < classes_.classes(); ++c) {
        out += leaving(i, c);
        in += arriving(i, c);
      }
      const BalanceDevice& device = problem_.devices[i];
      least_s =
          std::max({least_s,
                    static_cast<double>(out) * problem_.sample_bytes / device.send_bytes_per_s,
                    static_cast<double>(in) * problem_.sample_bytes / device.receive_bytes_per_s});
    }
    return least_s;
  }

  [[nodiscard]] double least_latency_s() const {
    constexpr double kShortest_s = 1e-9;
    double least_s = kInfiniteRate;
    for (const LinkProfile& link : problem_.links) {
      least_s = std::min(least_s, link.latency_s);
    }
    return std::max(least_s, kShortest_s);
  }

  [[nodiscard]] std::optional<std::vector<ClassMove>> within(double move_s) const {
    const std::size_t devices = problem_.size();
    std::vector<Index> room(devices * devices);
    for (std::size_t i = 0; i < room.size(); ++i) {
      room[i] = limits_.between(i / devices, i % devices, move_s);
    }
    std::vector<ClassMove> moves;
    for (const std::size_t of_class : order_) {
      if (!route(of_class, room, moves)) {
        return std::nullopt;
      }
    }
    std::sort(moves.begin(), moves.end(), [](const ClassMove& a, const ClassMove& b) {
      return std::tie(a.from, a.to, a.of_class) < std::tie(b.from, b.to, b.of_class);
    });
    return moves;
  }

  // A maximum flow of one class through what is left of the links.
  bool route(std::size_t of_class, std::vector<Index>& room, std::vector<ClassMove>& moves) const {
    const std::size_t devices = problem_.size();
    Digraph graph;
    Digraph::ArcMap<Index> capacity(graph);
    const Digraph::Node source = graph.addNode();
    const Digraph::Node sink = graph.addNode();
    std::map<std::size_t, Digraph::Node> senders;
    std::map<std::size_t, Digraph::Node> receivers;
    const auto add = [&](Digraph::Node from, Digraph::Node to, Index most) {
      const Digraph::Arc arc = graph.addArc(from, to);
      capacity[arc] = most;
      return arc;
    };
    for (std::size_t i = 0; i < devices; ++i) {
      if (const Index count = leaving(i, of_class); count > 0) {
        add(source, senders[i] = graph.addNode(), count);
      } else if (const Index more = arriving(i, of_class); more > 0) {
        add(receivers[i] = graph.addNode(), sink, more);
      }
    }
    std::vector<std::pair<std::size_t, Digraph::Arc>> arcs;  // pairs of devices
    for (const auto& [from, sender] : senders) {
      for (const auto& [to, receiver] : receivers) {
        arcs.emplace_back(from * devices + to, add(sender, receiver, room[from * devices + to]));
      }
    }
    lemon::Preflow<Digraph, Digraph::ArcMap<Index>> flow(graph, capacity, source, sink);
    flow.run();
    if (flow.flowValue() < moved(of_class)) {
      return false;
    }
    for (const auto& [pair, arc] : arcs) {
      if (const Index count = flow.flow(arc); count > 0) {
        room[pair] -= count;
        moves.push_back({static_cast<int>(pair / devices),
                         static_cast<int>(pair % devices),
                         static_cast<int>(of_class),
                         count});
      }
    }
    return true;
  }

  const BalanceProblem& problem_;
  MoveLimits limits_;
  const ClassSamples& classes_;
  const Counts& after_;
  std::vector<std::size_t> order_;  // classes of which most is moved first
};

std::vector<SampleMove> of_all_classes(const std::vector<ClassMove>& moves) {
  std::vector<SampleMove> sums;  // moves are sorted by pairs
  for (const ClassMove& move : moves) {
    if (sums.empty() || sums.back().from != move.from || sums.back().to != move.to) {
      sums.push_back({move.from, move.to, 0});
    }
    sums.back().count += move.count;
  }
  return sums;
}

}  // namespace

bool can_balance_classes() {
  return LinearProgram::is_available();
}

ClassBalance balance_classes(const BalanceProblem& problem,
                             const ClassSamples& classes,
                             double tolerance) {
  expects(problem.shard == 1 && problem.size() == classes.devices(), "classes of each device");
  expect_solvable(problem);
  const DividedBalance divided = solve_class_program(problem, classes, tolerance);
  const Counts after = WholeSamples(divided.after, classes).find();
  const ClassRoutes routes(problem, classes, after);
  ClassBalance result;
  result.moves = routes.run();
  result.balance = balance_of(problem, of_all_classes(result.moves));
  result.balance.lower_bound_s = std::min(divided.total_s, result.balance.total_s);
  return result;
}

}  // namespace tessera::partitioner
