// The predicted time of a training step of a plan on a cluster, its parts kept separate so that
// they can be explained.
//
// A step is the sum of its groups: of each, the messages that bring its inputs, the segments of
// computing between synchronisations, each as long as its slowest rank takes, and the messages that
// add up gradients. So nothing is hidden behind anything else, and groups wait for each other:
// that makes the time of a step a sum over groups, which a search can decompose. It knows nothing
// of the order of a step: simulation.h plays the plan's schedule through, without such
// simplifications; tests compare the two.
//
// What that leaves out most is that gradients are summed while the backward pass goes on, and new
// values sent while the next forward pass does: how much of it hides depends on all layers below,
// so on other groups. The model counts both in full. They are much the same for all ways to tile a
// network, so the order of partitions hardly changes; the few best are then ordered by their
// simulations, in which they do hide.
//
// All of a group's cost that depends on other groups is who owns the maps that it reads.

#pragma once

#include <map>
#include <vector>

#include "partitioner/base/overlaps.h"
#include "partitioner/cost/cluster_profile.h"
#include "partitioner/cost/layer_times.h"
#include "partitioner/cost/transfer_model.h"
#include "partitioner/plan/cut_mapping.h"
#include "partitioner/plan/group_geometry.h"
#include "partitioner/plan/kept_parts.h"
#include "partitioner/plan/plan.h"
#include "partitioner/plan/recomputation.h"

namespace tessera::partitioner {

struct CostOptions {
  Index passes = 1;          // forward and backward passes in a step: subdivisions of a batch
  bool has_loss = true;      // all ranks add up the loss after a forward pass
  bool trunk_given = false;  // the maps of the frozen trunk are kept: see plan/trunk_homes.h
  // Second copies of each step's state travel to another device: see partitioner/plan/kept_parts.h.
  StateKeeping kept = {};
  TrainedArrays trained = {};  // how much state that is
};

// The norm of gradients, of what updating takes: it reads one of the six numbers that an update
// reads or writes, setting the gradient to zero again included.
inline constexpr double kNormOfUpdate = 1.0 / 6;

// What one rank computes for one group in one pass, without messages.
struct RankSeconds {
  double forward_s = 0;  // layers with weights
  double backward_data_s = 0;
  double backward_weights_s = 0;
  double other_s = 0;      // normalisation, activation, pools, ..., both ways
  double recompute_s = 0;  // all that runs again before the backward pass
  double redundant_s = 0;  // of all of these: cells that another rank owns

  [[nodiscard]] double total() const {
    return forward_s + backward_data_s + backward_weights_s + other_s + recompute_s;
  }
};

// The cost of one group, in seconds of the whole cluster: what all have to wait for.
struct GroupCost {
  std::vector<RankSeconds> ranks;
  double compute_s = 0;    // segments, each by its slowest rank
  double recompute_s = 0;  // likewise: what runs again
  double forward_exchange_s = 0;
  double backward_exchange_s = 0;
  double owner_reduction_s = 0;
  double statistics_s = 0;  // batch statistics
  // Once per step:
  double gradient_reduction_s = 0;
  double update_s = 0;
  double parameter_all_gather_s = 0;

  [[nodiscard]] double pass_s() const {
    return compute_s + recompute_s + forward_exchange_s + backward_exchange_s + owner_reduction_s +
           statistics_s;
  }
  [[nodiscard]] double once_s() const {
    return gradient_reduction_s + update_s + parameter_all_gather_s;
  }
  [[nodiscard]] double total(Index passes) const {
    return static_cast<double>(passes) * pass_s() + once_s();
  }
};

struct StepCost {
  std::vector<GroupCost> groups;
  Index passes = 1;
  double loss_s = 0;  // of one pass
  double norm_s = 0;  // of the step's gradient, where it is clipped

  [[nodiscard]] double total() const;
};

[[nodiscard]] StepCost step_cost(const Network& network,
                                 const Plan& plan,
                                 const ClusterProfile& cluster,
                                 const CostOptions& options);

// The same of a partition of `batch` images per pass, without its whole plan: for many devices.
[[nodiscard]] StepCost step_cost(const Network& network,
                                 const Partition& partition,
                                 Index batch,
                                 const ClusterProfile& cluster,
                                 const CostOptions& options);

// Adding up the loss: numbers from each rank to each, twice.
[[nodiscard]] double loss_seconds(const ClusterProfile& cluster);

// How each layer of a group runs again.
[[nodiscard]] std::vector<RecomputedLayer> recomputed_work(const Network& network,
                                                           const GroupGeometry& group);

// The share of a group's cost that is its own: all but the exchanges of maps with other groups.
// What comes back in other groups is worked out once.
class GroupCosts {
 public:
  // The arguments must outlive it; `kernels` are of all layers.
  GroupCosts(const Network& network,
             const std::vector<ConvolutionKernels>& kernels,
             const GradientReduction& gradient_reduction,
             const ClusterProfile& cluster);

  [[nodiscard]] GroupCost inner(const GroupGeometry& group);

  // Some ranks of a group: their geometry, see group_geometry_of(), and the cuts of all its layers,
  // see cuts_of_group().
  struct SomeRanks {
    const std::vector<int>& ranks;
    const GroupGeometry& geometry;
    const Group& group;
    const std::vector<MapCut>& cuts;
  };
  // What the group costs at least, since it costs these ranks so much; batch statistics and the
  // reduction of gradients are those of all ranks that have the same channels. No part of a cut may
  // be empty, and no rank compute other channels than its own.
  [[nodiscard]] GroupCost least(const SomeRanks& some);

 private:
  class Adder;

  // What reducing, updating and gathering a group's parameters takes.
  struct ReductionSeconds {
    double gradients_s = 0;
    double update_s = 0;
    double values_s = 0;
  };
  [[nodiscard]] ReductionSeconds reduction_seconds(const GroupGeometry& group);
  [[nodiscard]] ReductionSeconds computed_reduction(const GroupGeometry& group);
  [[nodiscard]] ReductionSeconds reduction_of(const SomeRanks& some);
  [[nodiscard]] double statistics_of(const SomeRanks& some, int layer, Index numbers);

  const Network& network_;
  const GradientReduction& gradient_reduction_;
  const ClusterProfile& cluster_;
  LayerTimes times_;
  TransferLoad load_;  // room to work in
  std::map<std::vector<Index>, ReductionSeconds>
      known_reductions_;  // by layers and each rank's channels
  // Of whole groups, by what they depend on.
  std::map<std::vector<Index>, ReductionSeconds> whole_reductions_;
  std::map<std::vector<Index>, double> whole_statistics_;
};

// Ranks that own `owned` of a map send those who require it `required`; backward the same
// messages run the other way.
struct ExchangeSeconds {
  double forward_s = 0;
  double backward_s = 0;
};
// `load` of the cluster is room to work in.
[[nodiscard]] ExchangeSeconds exchange_seconds(const OverlapIndex& owned,
                                               const std::vector<Region>& required,
                                               TransferLoad& load);

}  // namespace tessera::partitioner
