// The parameters of a network on one rank: of each tensor the slice that the rank computes with.
// Each element is owned by one of the ranks that hold it; the owner adds up its gradient, updates
// it and sends it to the others; or it sends them the reduced gradient, and each updates it. They
// travel in buckets, see partitioner/partition/gradient_reduction.h.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/execution/parameter_bucket.h"
#include "engine/layers/layer.h"

namespace tessera::engine {

// "layers.3.weight", "layers.3.bn.mean", ...
[[nodiscard]] std::string parameter_name(const partitioner::ParameterPlan& plan);

// (K, C / groups, F, F) of a convolution, (K, C) of a connected layer, (K) of a vector.
[[nodiscard]] std::vector<Index> parameter_shape(const partitioner::Network& network,
                                                 const partitioner::ParameterPlan& plan);

template <class T>
class ParameterSet {
 public:
  // `training` makes room for gradients and for messages.
  ParameterSet(const partitioner::Network& network,
               const partitioner::Plan& plan,
               const Communicator& communicator,
               bool training);

  [[nodiscard]] std::deque<Parameter<T>>& all() { return parameters_; }
  [[nodiscard]] const std::deque<Parameter<T>>& all() const { return parameters_; }
  [[nodiscard]] const partitioner::Network& network() const { return *network_; }
  [[nodiscard]] ParameterViews<T> views(int layer);

  // Darknet's start: weights of a convolution normal with deviation sqrt(2 / inputs of a cell), of
  // a connected layer uniform in
  // +- that; biases 0, scales 1. Drawn by seed and global index, so the same for any partition.
  void initialize(std::uint64_t seed);

  // Nothing has been added to any from now on.
  void clear_gradients();
  // Whether nothing has been added to the gradient of a layer's weights: from now on it counts, so
  // that the caller assigns it or begins with begin_weight_gradient().
  [[nodiscard]] bool takes_first_weight_gradient(int layer);
  // It becomes 0.
  void begin_weight_gradient(int layer);
  // Those of all that is learnt here so far, while none is under way.
  void scale_gradients(double factor);
  // The sum of squares of those that this rank owns, of what learns in update `step`; after
  // finish_gradients() of all buckets.
  [[nodiscard]] double owned_gradient_squares(Index step) const;

  // Buckets, in the order of the backward pass: the plan's.
  [[nodiscard]] int buckets() const { return static_cast<int>(buckets_.size()); }
  [[nodiscard]] const std::vector<std::size_t>& in_bucket(int bucket) const;  // places in all()

  // The way of a bucket in a step; all ranks call all of this together, in this order. First, when
  // its gradients are complete on this rank. Those of shift and scale of normalised layers go with
  // it if `normalized`: else they are sums over all ranks already.
  void start_gradients(int bucket, bool normalized);
  // Then gradients of elements that this rank owns are added up; it updates them.
  void finish_gradients(int bucket);
  // And sends them to all who hold them, who wait for them before values are read again. Nothing
  // under way: nothing to wait for. Where reduced gradients have travelled in their place, because
  // the optimizer's state is replicated, elements of other owners are updated then.
  void start_values(int bucket);
  void finish_values(int bucket);
  // The same for all buckets.
  void finish_values();

  // Updates some elements of parameter number i, which another rank owns, by their reduced
  // gradients, as their owner did. Needed where the optimizer's state is replicated.
  using Update = std::function<void(std::size_t i, const Range& elements, const T* gradient)>;
  void update_by(Update update) { update_ = std::move(update); }

  // Running statistics, from the owners, where ranks may have different ones.
  void start_statistics();
  void finish_statistics();

  [[nodiscard]] const partitioner::Compression& compression() const { return compression_; }

  // What compression has left of gradients and values, where these travel compressed: of a bucket
  // after the other.
  [[nodiscard]] std::vector<Array<T>*> error_feedback();

  // All of a tensor on rank 0 (empty elsewhere), and from there to those who hold parts. All ranks
  // call these together. `held` is the parameter's values, or something laid out alike. Where a
  // tensor need not be in memory whole, see parameter_chunks.h.
  [[nodiscard]] std::vector<T> gather(const Parameter<T>& parameter, const T* held) const;
  void scatter(Parameter<T>& parameter, const std::vector<T>& whole, T* held) const;

  // By which all of this travels while kernels compute; what else does may go with it.
  [[nodiscard]] BulkTransfers& transfers() { return transfers_; }

  [[nodiscard]] Index value_bytes() const;
  [[nodiscard]] Index gradient_bytes() const;
  [[nodiscard]] Index message_bytes() const;

 private:
  struct Bucket {
    partitioner::GradientBucket layers;
    std::vector<std::size_t> parameters;  // places in `parameters_`
    ParameterBucket<T> shared;
    bool values_under_way = false;
  };
  void make_buckets(const partitioner::Plan& plan);
  [[nodiscard]] Parameter<T>& weights_of(int layer);
  void finish_all_gather(Bucket& bucket);
  [[nodiscard]] Bucket& at(int bucket) { return buckets_[static_cast<std::size_t>(bucket)]; }

  const partitioner::Network* network_;
  const Communicator* communicator_;
  partitioner::Compression compression_;
  std::deque<Parameter<T>> parameters_;  // by layer, then kind
  std::deque<Bucket> buckets_;           // in the order of the backward pass
  std::optional<ParameterBucket<T>> statistics_;
  BulkTransfers transfers_;
  Update update_;
};

}  // namespace tessera::engine
