#include "engine/execution/transfer_table.h"

#include <algorithm>

#include "engine/comm/tags.h"
#include "partitioner/plan/forward_parts.h"
#include "partitioner/plan/transfers.h"

namespace tessera::engine {

using partitioner::Message;
using partitioner::Transfer;
using partitioner::TransferIndex;
using partitioner::TransferKind;

namespace {

// Each transfer has two tags, one for either way.
int tag_of(TransferIndex transfer) {
  return kFirstExchangeTag + 2 * transfer.number();
}

// What the time of adding up a number counts for: a loss, or the norm of gradients.
double ExchangeTimes::*purpose_of(TransferKind sum) {
  return sum == TransferKind::Loss ? &ExchangeTimes::statistics_s : &ExchangeTimes::reduction_s;
}

}  // namespace

template <class T>
TransferTable<T>::TransferTable(const partitioner::Network& network,
                                const partitioner::Plan& plan,
                                const Communicator& communicator,
                                ActivationMemory<T>& memory,
                                ParameterSet<T>& parameters,
                                bool image_gradient)
    : plan_(&plan),
      communicator_(&communicator),
      parameters_(&parameters),
      objects_(network, plan, communicator, memory),
      loss_(communicator) {
  if (plan.replicas.run_ahead()) {
    replica_loss_.emplace(communicator,
                          plan.copy_of(communicator.rank()) * plan.ranks_of_copy(),
                          plan.ranks_of_copy());
  }
  set_statistics(plan);
  make_edges(network, memory, image_gradient);
}

template <class T>
void TransferTable<T>::set_statistics(const partitioner::Plan& plan) {
  const int rank = communicator_->rank();
  statistics_.clear();
  statistics_.resize(plan.group_of.size());
  for (const TransferIndex i : plan.transfers.indices()) {
    const Transfer& transfer = plan.transfers[i];
    const bool gradients = transfer.kind == TransferKind::StatisticsGradient;
    if (transfer.kind != TransferKind::BatchStatistics && !gradients) {
      continue;
    }
    const partitioner::Tile& tile = plan.tile(transfer.subject, rank);
    auto& statistics = statistics_[static_cast<std::size_t>(transfer.subject)];
    if (statistics == nullptr) {
      statistics = std::make_unique<BatchStatistics>();
    }
    (gradients ? statistics->gradients : statistics->moments)
        .emplace(*communicator_,
                 OwnChannels{partitioner::channels_of(gradients ? tile.backward : tile.owned),
                             partitioner::channels_of(tile.computed)},
                 messages_of(plan, transfer),
                 gradients ? kGradientFields : kMomentFields,
                 tag_of(i));
  }
}

template <class T>
void TransferTable<T>::make_edges(const partitioner::Network& network,
                                  ActivationMemory<T>& memory,
                                  bool image_gradient) {
  const int rank = communicator_->rank();
  edge_of_.resize(plan_->transfers.size());
  for (const TransferIndex i : plan_->transfers.indices()) {
    const Transfer& transfer = plan_->transfers[i];
    const auto exchange = [&](bool used) {
      return Exchange<T>(*communicator_,
                         used ? transfer.messages : std::vector<Message>{},
                         tag_of(i),
                         &parameters_->transfers());
    };
    if (transfer.kind == TransferKind::FeatureMap) {
      const int reader = first_reader(network, *plan_, transfer.subject, transfer.group);
      const auto& inputs = network.layer(reader).inputs;
      const auto input = std::find(inputs.begin(), inputs.end(), transfer.subject) - inputs.begin();
      const partitioner::BufferIndex owned = plan_->producer(rank, transfer.subject);
      const partitioner::BufferIndex required =
          plan_->read_from[static_cast<std::size_t>(rank)][static_cast<std::size_t>(reader)]
                          [static_cast<std::size_t>(input)];
      edge_of_[i] = &edges_.emplace_back(Edge{exchange(transfer.is_sent || image_gradient),
                                              memory.values(owned),
                                              memory.values(required),
                                              memory.gradient(owned),
                                              memory.gradient(required)});
    } else if (transfer.kind == TransferKind::MapGradient) {
      const View<T> gradient = memory.map_gradient(transfer.subject);
      edge_of_[i] = transfer.list_of != partitioner::kNoTransfer
                        ? edge_of_[transfer.list_of]
                        : &edges_.emplace_back(Edge{exchange(true), {}, {}, gradient, gradient});
    }
  }
}

template <class T>
void TransferTable<T>::start(TransferIndex number,
                             const NormStates<T>& norms,
                             const Targets* targets) {
  const Transfer& started = transfer(number);
  const auto norm = [&]() -> const NormState<T>& {
    return *norms[static_cast<std::size_t>(started.subject)];
  };
  switch (started.kind) {
    case TransferKind::FeatureMap:
      edge(number).exchange.start_copy(edge(number).owned);
      break;
    case TransferKind::MapGradient:
      edge(number).exchange.start_add(edge(number).required_gradient);
      break;
    case TransferKind::BatchStatistics:
      moments(started.subject).start(norm().moments);
      break;
    case TransferKind::StatisticsGradient:
      statistics_gradients(started.subject).start(norm().gradients);
      break;
    case TransferKind::Candidates:
      objects_.start_candidates(started.subject, targets);
      break;
    case TransferKind::Assignments:
      objects_.start_assignments(started.subject);
      break;
    case TransferKind::Loss:
    case TransferKind::GradientNorm: {
      const ExchangeTimer timer(*communicator_, purpose_of(started.kind));
      loss().start(started.subject);
      break;
    }
    case TransferKind::ParameterGradient:
      parameters_->start_gradients(started.subject, started.normalized);
      break;
    case TransferKind::ParameterValue:
      parameters_->start_values(started.subject);
      break;
    case TransferKind::RunningStatistics:
      parameters_->start_statistics();
      break;
  }
}

template <class T>
void TransferTable<T>::finish(TransferIndex number) {
  const Transfer& finished = transfer(number);
  switch (finished.kind) {
    case TransferKind::FeatureMap:
      edge(number).exchange.finish_copy(edge(number).required);
      break;
    case TransferKind::MapGradient:
      edge(number).exchange.finish_add(edge(number).owned_gradient);
      break;
    case TransferKind::BatchStatistics:
      moments(finished.subject).finish();
      break;
    case TransferKind::StatisticsGradient:
      statistics_gradients(finished.subject).finish();
      break;
    case TransferKind::Candidates:
      objects_.finish_candidates(finished.subject);
      break;
    case TransferKind::Assignments:
      objects_.finish_assignments(finished.subject);
      break;
    case TransferKind::Loss:
    case TransferKind::GradientNorm: {
      const ExchangeTimer timer(*communicator_, purpose_of(finished.kind));
      loss().finish();
      break;
    }
    case TransferKind::ParameterGradient:
      parameters_->finish_gradients(finished.subject);
      break;
    case TransferKind::ParameterValue:
      parameters_->finish_values(finished.subject);
      break;
    case TransferKind::RunningStatistics:
      parameters_->finish_statistics();
      break;
  }
}

template <class T>
void TransferTable<T>::progress_sends() {
  for (Edge& edge : edges_) {
    edge.exchange.progress_sends();
  }
}

template <class T>
void TransferTable<T>::finish_sends() {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::maps_s);
  for (Edge& edge : edges_) {
    edge.exchange.finish_sends();
  }
}

template <class T>
Index TransferTable<T>::bytes() const {
  Index bytes = objects_.bytes();
  for (const auto& statistics : statistics_) {
    bytes +=
        statistics != nullptr ? statistics->moments->bytes() + statistics->gradients->bytes() : 0;
  }
  for (const Edge& edge : edges_) {
    bytes += edge.exchange.bytes();
  }
  return bytes;
}

template class TransferTable<float>;
template class TransferTable<double>;

}  // namespace tessera::engine
