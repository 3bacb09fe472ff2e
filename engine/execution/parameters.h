// The parameters of a network on one rank: of each tensor the slice that the rank computes with.
// Each element is owned by one of the ranks that hold it; the owner adds up its gradient, updates
// it and sends it to the others.
//
// A tensor is a map of one row: element e of (K, row) is column e, so the messages of a parameter
// are those of any map.

#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/comm/exchange.h"
#include "engine/layers/layer.h"

namespace engine {

template <class T>
struct Parameter {
  const partitioner::ParameterPlan* plan = nullptr;
  Range held;         // elements of the whole tensor
  Array<T> values;    // of them
  Array<T> gradient;  // of them; empty where nothing is learnt
  Exchange<T> exchange;

  [[nodiscard]] bool learnt() const { return gradient.size() > 0 || held.empty(); }
  [[nodiscard]] View<T> view() { return {values.data(), {{0, 1}, {0, 1}, {0, 1}, held}, 1}; }
  [[nodiscard]] View<T> gradient_view() {
    return {gradient.data(), {{0, 1}, {0, 1}, {0, 1}, held}, 1};
  }
  [[nodiscard]] Index size() const {
    return plan->shape.channels * plan->shape.row;
  }  // of the whole tensor
};

[[nodiscard]] constexpr bool is_learnt(partitioner::ParameterKind kind) {
  return kind != partitioner::ParameterKind::Mean && kind != partitioner::ParameterKind::Variance;
}

// "layers.3.weight", "layers.3.bn.mean", ...
[[nodiscard]] std::string parameter_name(const partitioner::ParameterPlan& plan);

// (K, C / groups, F, F) of a convolution, (K, C) of a connected layer, (K) of a vector.
[[nodiscard]] std::vector<Index> parameter_shape(const partitioner::Network& network,
                                                 const partitioner::ParameterPlan& plan);

template <class T>
class ParameterSet {
 public:
  // Tags from `first_tag` on are used for exchanges; `training` makes room for gradients.
  ParameterSet(const partitioner::Network& network,
               const partitioner::Plan& plan,
               const Communicator& communicator,
               int first_tag,
               bool training);

  [[nodiscard]] std::deque<Parameter<T>>& all() { return parameters_; }
  [[nodiscard]] const std::deque<Parameter<T>>& all() const { return parameters_; }
  [[nodiscard]] const partitioner::Network& network() const { return *network_; }
  [[nodiscard]] ParameterViews<T> views(int layer);

  // Darknet's start: weights of a convolution normal with deviation sqrt(2 / inputs of a cell), of
  // a connected layer uniform in
  // +- that; biases 0, scales 1. Drawn by seed and global index, so the same for any partition.
  void initialize(std::uint64_t seed);

  void clear_gradients();

  // Adds up gradients at their owners. With Sync batch normalisation those of shift and scale are
  // sums over all ranks already. All ranks call this together.
  void sum_gradients(BatchNormMode mode);

  // Sends values from their owners to all who hold them; running statistics too where ranks may
  // have different ones.
  void share_values(BatchNormMode mode);

  // All of a tensor on rank 0 (empty elsewhere), and from there to those who hold parts. All ranks
  // call these together. `owner` says whose values count: those of the parameter itself, or of
  // something laid out alike.
  [[nodiscard]] std::vector<T> gather(const Parameter<T>& parameter, const T* held) const;
  void scatter(Parameter<T>& parameter, const std::vector<T>& whole, T* held) const;

  [[nodiscard]] Index value_bytes() const;
  [[nodiscard]] Index gradient_bytes() const;
  [[nodiscard]] Index message_bytes() const;

 private:
  [[nodiscard]] bool summed_elsewhere(const Parameter<T>& parameter, BatchNormMode mode) const;

  const partitioner::Network* network_;
  const Communicator* communicator_;
  std::deque<Parameter<T>> parameters_;  // by layer, then kind
};

}  // namespace engine
