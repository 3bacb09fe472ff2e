#include "partitioner/plan/plan_totals.h"

#include "partitioner/plan/transfers.h"

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

// Over the wire: those to oneself are none.
void count(const Plan& plan,
           const Transfer& transfer,
           Index scalar_bytes,
           Traffic Totals::*sent,
           Traffic Totals::*received,
           std::vector<Totals>& ranks) {
  for_each_message(plan, transfer, [&](int from, int to, const Payload& payload) {
    if (from != to) {
      const Traffic one{1, message_bytes(plan, transfer, payload, scalar_bytes)};
      add(ranks[static_cast<std::size_t>(from)].*sent, one);
      add(ranks[static_cast<std::size_t>(to)].*received, one);
    }
  });
}

void count_parameters(const Plan& plan,
                      TransferIndex transfer,
                      Index scalar_bytes,
                      PlanTotals& totals) {
  const Transfer& counted = plan.transfers[transfer];
  for_each_message(plan, counted, [&](int from, int to, const Payload& payload) {
    const Traffic one{1, message_bytes(plan, counted, payload, scalar_bytes)};
    add(totals.gradient_reduction_out[static_cast<std::size_t>(from)], one);
    add(totals.gradient_reduction_in[static_cast<std::size_t>(to)], one);
  });
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

bool carries_statistics(const Transfer& transfer) {
  return transfer.kind == TransferKind::BatchStatistics ||
         transfer.kind == TransferKind::StatisticsGradient;
}

}  // namespace

PlanTotals plan_totals(const Network& network, const Plan& plan, Index scalar_bytes) {
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  const auto groups = static_cast<std::size_t>(plan.group(network.size() - 1)) + 1;
  PlanTotals totals;
  totals.by_group.assign(groups, std::vector<Totals>(ranks));
  totals.gradient_reduction_in.resize(ranks);
  totals.gradient_reduction_out.resize(ranks);
  totals.batch_statistics_in_bytes.resize(ranks);
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.kind == TransferKind::FeatureMap && transfer.is_sent) {
      count(plan,
            transfer,
            scalar_bytes,
            &Totals::forward_out,
            &Totals::forward_in,
            totals.by_group[static_cast<std::size_t>(transfer.group)]);
    } else if (transfer.kind == TransferKind::MapGradient && transfer.subject != kImage) {
      count(plan,
            transfer,
            scalar_bytes,
            &Totals::backward_out,
            &Totals::backward_in,
            totals.by_group[static_cast<std::size_t>(transfer.group)]);
    } else if (carries_statistics(transfer)) {
      for_each_message(plan, transfer, [&](int, int to, const Payload& payload) {
        totals.batch_statistics_in_bytes[static_cast<std::size_t>(to)] +=
            message_bytes(plan, transfer, payload, scalar_bytes);
      });
    }
  }
  for (const BucketPlan& bucket : plan.buckets) {
    count_parameters(plan, bucket.gradients, scalar_bytes, totals);
    count_parameters(plan, bucket.values, scalar_bytes, totals);
  }
  count_work(network, plan, totals);
  totals.group_totals.resize(groups);
  totals.rank_totals.resize(ranks);
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      add(totals.group_totals[group], totals.by_group[group][rank]);
      add(totals.rank_totals[rank], totals.by_group[group][rank]);
    }
    add(totals.sum, totals.group_totals[group]);
  }
  return totals;
}

}  // namespace tessera::partitioner
