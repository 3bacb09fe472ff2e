// The transfers of a plan on one rank: what its schedule starts and finishes by number. Each has
// both of its ends here: cells in the activation memory, parameters, statistics or the loss.

#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/comm/channel_shares.h"
#include "engine/comm/exchange.h"
#include "engine/execution/activation_memory.h"
#include "engine/execution/loss_exchange.h"
#include "engine/execution/object_exchange.h"
#include "engine/execution/parameters.h"

namespace tessera::engine {

// By layer, null where it does not normalise: what the phases of a layer leave for each other, and
// for other ranks.
template <class T>
using NormStates = std::vector<std::unique_ptr<NormState<T>>>;

template <class T>
class TransferTable {
 public:
  // All but the network must outlive it. `image_gradient`: that of the network's input travels.
  TransferTable(const partitioner::Network& network,
                const partitioner::Plan& plan,
                const Communicator& communicator,
                ActivationMemory<T>& memory,
                ParameterSet<T>& parameters,
                bool image_gradient);
  TransferTable(const TransferTable&) = delete;
  TransferTable& operator=(const TransferTable&) = delete;

  // Statistics are those of another plan from now on, in which others contribute to them.
  void set_statistics(const partitioner::Plan& plan);

  // The plan of the next pass, where ranks may have other images.
  void set_plan(const partitioner::Plan& plan) { objects_.set_plan(plan); }

  // `targets` are of the images of the pass, or null.
  void start(partitioner::TransferIndex transfer,
             const NormStates<T>& norms,
             const Targets* targets);
  void finish(partitioner::TransferIndex transfer);

  // The statistics of a layer that normalises by those of the batch, and their gradients.
  [[nodiscard]] ChannelShares& moments(int layer) { return *statistics(layer).moments; }
  [[nodiscard]] ChannelShares& statistics_gradients(int layer) {
    return *statistics(layer).gradients;
  }

  // The loss that start() and finish() exchange: of all ranks, or of a replica for which the others
  // do not wait.
  void select_loss(bool training) {
    selected_loss_ = training && replica_loss_ ? &*replica_loss_ : &loss_;
  }
  [[nodiscard]] LossExchange& loss() { return *selected_loss_; }

  [[nodiscard]] ObjectExchange<T>& objects() { return objects_; }
  [[nodiscard]] const ObjectExchange<T>& objects() const { return objects_; }

  // Messages of maps and their gradients, whose finish does not wait for what the rank itself
  // sends.
  void progress_sends();
  void finish_sends();

  // The size of buffers for messages, those of parameters not counted.
  [[nodiscard]] Index bytes() const;

 private:
  // A map on its way to a group and its gradient on the way back, or a gradient on its way to its
  // owners, with the cells at both ends.
  struct Edge {
    Exchange<T> exchange;
    View<T> owned;
    View<T> required;
    View<T> owned_gradient;
    View<T> required_gradient;
  };
  struct BatchStatistics {
    std::optional<ChannelShares> moments;
    std::optional<ChannelShares> gradients;
  };

  void make_edges(const partitioner::Network& network,
                  ActivationMemory<T>& memory,
                  bool image_gradient);
  [[nodiscard]] Edge& edge(partitioner::TransferIndex transfer) { return *edge_of_[transfer]; }
  [[nodiscard]] BatchStatistics& statistics(int layer) {
    return *statistics_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] const partitioner::Transfer& transfer(partitioner::TransferIndex number) const {
    return plan_->transfers[number];
  }

  const partitioner::Plan* plan_;
  const Communicator* communicator_;
  ParameterSet<T>* parameters_;
  std::deque<Edge> edges_;
  IndexedVector<partitioner::TransferIndex, Edge*> edge_of_;  // null: not of a map
  std::vector<std::unique_ptr<BatchStatistics>> statistics_;  // by layer; null: it has none
  ObjectExchange<T> objects_;
  LossExchange loss_;                         // of all ranks
  std::optional<LossExchange> replica_loss_;  // of a replica that others do not wait for
  LossExchange* selected_loss_ = &loss_;
};

}  // namespace tessera::engine
