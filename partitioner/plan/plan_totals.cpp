#include "partitioner/plan/plan_totals.h"

#include <map>
#include <utility>

#include "partitioner/network/layer_memory.h"

namespace tessera::partitioner {

namespace {

void add(Traffic& sum, const Traffic& term) {
  sum.messages += term.messages;
  sum.bytes += term.bytes;
}

void add(Totals& sum, const Totals& term) {
  add(sum.forward_in, term.forward_in);
  add(sum.forward_out, term.forward_out);
  add(sum.backward_in, term.backward_in);
  add(sum.backward_out, term.backward_out);
  sum.work.multiply_adds += term.work.multiply_adds;
  sum.work.redundant += term.work.redundant;
}

void count_forward(const Exchange& exchange, Index scalar_bytes, std::vector<Totals>& ranks) {
  for (const Message& message : exchange.messages) {
    if (message.from != message.to) {
      const Traffic one{1, message.region.volume() * scalar_bytes};
      add(ranks[static_cast<std::size_t>(message.from)].forward_out, one);
      add(ranks[static_cast<std::size_t>(message.to)].forward_in, one);
    }
  }
}

void count_backward(const Exchange& exchange, Index scalar_bytes, std::vector<Totals>& ranks) {
  for (const Message& message : exchange.messages) {
    if (message.from != message.to) {
      const Traffic one{1, message.region.volume() * scalar_bytes};
      add(ranks[static_cast<std::size_t>(message.to)].backward_out, one);
      add(ranks[static_cast<std::size_t>(message.from)].backward_in, one);
    }
  }
}

// Scale and shift of a normalised layer arrive as sums over all ranks already; their new values are
// sent all the same.
bool gradient_is_sent(const Network& network, const ParameterPlan& parameter) {
  const bool normalized = layer_parameters(network, parameter.layer).scale.channels > 0;
  return parameter.kind == ParameterKind::Weight ||
         (parameter.kind == ParameterKind::Bias && !normalized);
}

// What goes from one rank to another in one message.
using Elements = std::map<std::pair<int, int>, Index>;

void count_messages(const Elements& elements,
                    SumPrecision precision,
                    Index scalar_bytes,
                    PlanTotals& totals) {
  for (const auto& [ranks, count] : elements) {
    const Traffic one{1, sum_message_bytes(precision, count, scalar_bytes)};
    add(totals.gradient_sum_out[static_cast<std::size_t>(ranks.first)], one);
    add(totals.gradient_sum_in[static_cast<std::size_t>(ranks.second)], one);
  }
}

void count_bucket(const Network& network,
                  const Plan& plan,
                  const SumBucket& bucket,
                  Index scalar_bytes,
                  PlanTotals& totals) {
  Elements gradients;
  Elements values;
  for (const ParameterPlan& parameter : plan.parameters) {
    const bool learnt =
        parameter.kind != ParameterKind::Mean && parameter.kind != ParameterKind::Variance;
    if (!learnt || parameter.layer < bucket.first || parameter.layer > bucket.last) {
      continue;
    }
    for (const Message& message : parameter.messages) {
      values[{message.from, message.to}] += message.region.volume();
      if (gradient_is_sent(network, parameter)) {
        gradients[{message.to, message.from}] += message.region.volume();
      }
    }
  }
  count_messages(gradients, plan.sums.precision, scalar_bytes, totals);
  count_messages(values, plan.sums.precision, scalar_bytes, totals);
}

void count_work(const Network& network, const Plan& plan, PlanTotals& totals) {
  for (int layer = 0; layer < network.size(); ++layer) {
    auto& ranks = totals.by_group[static_cast<std::size_t>(plan.group(layer))];
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Work work = forward_work(network, plan, layer, rank);
      Work& sum = ranks[static_cast<std::size_t>(rank)].work;
      sum.multiply_adds += work.multiply_adds;
      sum.redundant += work.redundant;
    }
  }
}

Index received_channels(const Plan& plan, int layer, int rank, Region Tile::*contributes) {
  const Region& needed = plan.tile(layer, rank).computed;
  Index channels = 0;
  for (int from = 0; from < plan.ranks; ++from) {
    const Region& share = plan.tile(layer, from).*contributes;
    if (from != rank && !share.empty() && !needed.empty()) {
      channels += intersect(share.channels, needed.channels).size();
    }
  }
  return channels;
}

}  // namespace

bool is_sent_forward(const Plan& plan, const Exchange& exchange) {
  return exchange.map != kImage || plan.reader != kEveryRank;
}

Index channel_sum_bytes(const Network& network, const Plan& plan, int layer, int rank) {
  if (!normalizes(network.layer(layer).operation)) {
    return 0;
  }
  constexpr Index kNumberBytes = 8;
  return kNumberBytes * (3 * received_channels(plan, layer, rank, &Tile::owned) +
                         2 * received_channels(plan, layer, rank, &Tile::backward));
}

PlanTotals plan_totals(const Network& network, const Plan& plan, Index scalar_bytes) {
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  const auto groups = static_cast<std::size_t>(plan.group(network.size() - 1)) + 1;
  PlanTotals totals;
  totals.by_group.assign(groups, std::vector<Totals>(ranks));
  for (const Exchange& exchange : plan.exchanges) {
    auto& readers = totals.by_group[static_cast<std::size_t>(exchange.group)];
    if (is_sent_forward(plan, exchange)) {
      count_forward(exchange, scalar_bytes, readers);
    }
    if (exchange.map != kImage) {
      count_backward(exchange, scalar_bytes, readers);
    }
  }
  for (const Exchange& collapse : plan.collapses) {
    count_backward(
        collapse, scalar_bytes, totals.by_group[static_cast<std::size_t>(collapse.group)]);
  }
  count_work(network, plan, totals);
  totals.group_sums.resize(groups);
  totals.rank_sums.resize(ranks);
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      add(totals.group_sums[group], totals.by_group[group][rank]);
      add(totals.rank_sums[rank], totals.by_group[group][rank]);
    }
    add(totals.sum, totals.group_sums[group]);
  }
  totals.gradient_sum_in.resize(ranks);
  totals.gradient_sum_out.resize(ranks);
  for (const SumBucket& bucket : sum_buckets(network, plan.sums)) {
    count_bucket(network, plan, bucket, scalar_bytes, totals);
  }
  for (int rank = 0; rank < plan.ranks; ++rank) {
    Index bytes = 0;
    for (int layer = 0; layer < network.size(); ++layer) {
      bytes += channel_sum_bytes(network, plan, layer, rank);
    }
    totals.channel_sum_in_bytes.push_back(bytes);
  }
  return totals;
}

}  // namespace tessera::partitioner
