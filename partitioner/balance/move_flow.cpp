#include "partitioner/balance/move_flow.h"

#include <algorithm>
#include <lemon/network_simplex.h>
#include <lemon/preflow.h>
#include <lemon/smart_graph.h>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

struct MoveFlow::Graph {
  using Digraph = lemon::SmartDigraph;
  using Node = Digraph::Node;
  using Arc = Digraph::Arc;

  explicit Graph(const BalanceProblem& problem) {
    const std::size_t devices = problem.size();
    for (std::vector<Node>* nodes : {&holds, &sends, &receives, &keeps}) {
      for (std::size_t i = 0; i < devices; ++i) {
        nodes->push_back(digraph.addNode());
      }
    }
    for (std::size_t i = 0; i < devices; ++i) {
      supply.push_back(digraph.addArc(source, holds[i]));
      stay.push_back(digraph.addArc(holds[i], keeps[i]));
      out.push_back(digraph.addArc(holds[i], sends[i]));
      in.push_back(digraph.addArc(receives[i], keeps[i]));
      kept.push_back(digraph.addArc(keeps[i], sink));
      for (std::size_t to = 0; to < devices; ++to) {
        pairs.push_back(digraph.addArc(sends[i], receives[to]));
      }
    }
  }

  Digraph digraph;
  Node source = digraph.addNode();
  Node sink = digraph.addNode();
  std::vector<Node> holds, sends, receives, keeps;
  std::vector<Arc> supply, stay, out, in, kept;
  std::vector<Arc> pairs;  // [from * devices + to]
  Digraph::ArcMap<Index> capacity{digraph};
};

MoveFlow::MoveFlow(const BalanceProblem& problem)
    : problem_(problem), limits_(problem), graph_(std::make_unique<Graph>(problem)) {
  for (std::size_t i = 0; i < problem.size(); ++i) {
    graph_->capacity[graph_->supply[i]] = limits_.before(i);
    graph_->capacity[graph_->stay[i]] = limits_.before(i);
  }
}

MoveFlow::~MoveFlow() = default;

void MoveFlow::set_capacities(const BalanceTimes& times) {
  Graph& graph = *graph_;
  const std::size_t devices = problem_.size();
  for (std::size_t i = 0; i < devices; ++i) {
    graph.capacity[graph.out[i]] = limits_.out_of(i, times.move_s);
    graph.capacity[graph.in[i]] = limits_.into(i, times.move_s);
    graph.capacity[graph.kept[i]] = limits_.on(i, times.epoch_s);
    for (std::size_t to = 0; to < devices; ++to) {
      graph.capacity[graph.pairs[i * devices + to]] = limits_.between(i, to, times.move_s);
    }
  }
}

std::optional<std::vector<SampleMove>> MoveFlow::moves(const BalanceTimes& times, MoveCut& cut) {
  Graph& graph = *graph_;
  set_capacities(times);
  lemon::Preflow<Graph::Digraph, Graph::Digraph::ArcMap<Index>> flow(
      graph.digraph, graph.capacity, graph.source, graph.sink);
  flow.runMinCut();
  if (flow.flowValue() < limits_.all()) {
    const auto side = [&flow](const std::vector<Graph::Node>& nodes) {
      std::vector<char> on_it;
      on_it.reserve(nodes.size());
      for (const Graph::Node node : nodes) {
        on_it.push_back(flow.minCut(node) ? 1 : 0);
      }
      return on_it;
    };
    cut = {side(graph.holds), side(graph.sends), side(graph.receives), side(graph.keeps)};
    return std::nullopt;
  }
  flow.startSecondPhase();
  return moves_of(flow);
}

std::vector<SampleMove> MoveFlow::fewest_moves(const BalanceTimes& times) {
  Graph& graph = *graph_;
  set_capacities(times);
  Graph::Digraph::ArcMap<Index> cost(graph.digraph, 0);
  for (const Graph::Arc arc : graph.pairs) {
    cost[arc] = 1;
  }
  lemon::NetworkSimplex<Graph::Digraph, Index, Index> flow(graph.digraph);
  flow.upperMap(graph.capacity).costMap(cost);
  flow.stSupply(graph.source, graph.sink, limits_.all());
  const bool found = flow.run() == decltype(flow)::OPTIMAL;
  expects(found, "some moves keep to the times");
  return moves_of(flow);
}

template <class Flow>
std::vector<SampleMove> MoveFlow::moves_of(const Flow& flow) const {
  const std::size_t devices = problem_.size();
  std::vector<SampleMove> moves;
  for (std::size_t i = 0; i < devices * devices; ++i) {
    if (const Index count = flow.flow(graph_->pairs[i]); count > 0) {
      moves.push_back(
          {static_cast<int>(i / devices), static_cast<int>(i % devices), count * problem_.shard});
    }
  }
  return moves;
}

namespace {

// What a cut lets pass, by the time of moving.
class CutCapacity {
 public:
  CutCapacity(const BalanceProblem& problem, const MoveCut& cut, double epoch_s)
      : problem_(problem), limits_(problem), cut_(cut), missing_(limits_.all()) {
    for (std::size_t i = 0; i < problem.size(); ++i) {
      if (cut.holds[i] == 0 || cut.keeps[i] == 0) {
        missing_ -= limits_.before(i);
      }
      if (cut.keeps[i] != 0) {
        missing_ -= limits_.on(i, epoch_s);
      }
    }
  }

  [[nodiscard]] bool lets_pass(double move_s) const {
    Index missing = missing_;
    for (std::size_t i = 0; i < problem_.size() && missing > 0; ++i) {
      if (cut_.holds[i] != 0 && cut_.sends[i] == 0) {
        missing -= limits_.out_of(i, move_s);
      }
      if (cut_.receives[i] != 0 && cut_.keeps[i] == 0) {
        missing -= limits_.into(i, move_s);
      }
      for (std::size_t to = 0; cut_.sends[i] != 0 && to < problem_.size() && missing > 0; ++to) {
        if (cut_.receives[to] == 0) {
          missing -= limits_.between(i, to, move_s);
        }
      }
    }
    return missing <= 0;
  }

 private:
  const BalanceProblem& problem_;
  MoveLimits limits_;
  const MoveCut& cut_;
  Index missing_;
};

}  // namespace

double least_move_s(const BalanceProblem& problem,
                    const MoveCut& cut,
                    double epoch_s,
                    double from_s) {
  constexpr double kPrecision = 1e-12;
  constexpr double kLongest = 1e300;  // seconds
  constexpr double kShortest = 1e-9;  // seconds that make a difference
  const CutCapacity capacity(problem, cut, epoch_s);
  if (capacity.lets_pass(from_s)) {
    return from_s;
  }
  double low = from_s;
  double high = std::max(from_s, kShortest);
  while (!capacity.lets_pass(high)) {
    low = high;
    high *= 2;
    if (high > kLongest) {
      return kInfiniteRate;
    }
  }
  while (high - low > kPrecision * std::max(high, kShortest)) {
    const double middle = (low + high) / 2;
    (capacity.lets_pass(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace tessera::partitioner
