#include "partitioner/plan/deferred_weights.h"

#include <algorithm>

#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/recomputation.h"

namespace tessera::partitioner {

namespace {

// The layer whose gradients come next after those of `layer`, pools left out; kNoLayer where its
// inputs are not simply the layer before.
int next_at_work(const Network& network, int layer) {
  const auto reads_the_one_before = [&](int at) {
    return at > 0 && network.layer(at).inputs == std::vector<int>{at - 1};
  };
  if (!reads_the_one_before(layer)) {
    return kNoLayer;
  }
  const bool pool = layer_traits(network.layer(layer - 1).operation).keeps_argmax;
  if (!pool) {
    return layer - 1;
  }
  return reads_the_one_before(layer - 1) ? layer - 2 : kNoLayer;
}

bool travels(const std::vector<Message>& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const Message& message) {
    return message.from != message.to;
  });
}

// Whether gradients of some map from `first` to `last` do.
bool gradients_travel(const Plan& plan, int first, int last) {
  const auto lies_between = [=](int map) { return first <= map && map <= last; };
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.kind == TransferKind::FeatureMap && lies_between(transfer.subject) &&
        travels(transfer.messages)) {
      return true;
    }
  }
  for (int map = first; map <= last; ++map) {
    for (const OwnerReduction& reduction :
         plan.groups[static_cast<std::size_t>(plan.group(map))].reductions) {
      if (reduction.map == map && travels(reduction.messages)) {
        return true;
      }
    }
  }
  return false;
}

// One of which something runs again, and so takes memory.
bool ends_recomputed_group(const Network& network, const Plan& plan, int layer) {
  const int group = plan.group(layer);
  if (!plan.recomputes(group) || plan.group(layer + 1) == group) {
    return false;
  }
  const GroupGeometry& geometry = plan.groups[static_cast<std::size_t>(group)];
  return runs_again(network, {geometry.first, geometry.last});
}

bool may_be_deferred(const Network& network, int layer, int next) {
  return next != kNoLayer && learns(network.layer(layer)) &&
         takes_batch_statistics(network.layer(next));
}

bool recomputed_group_ends(const Network& network, const Plan& plan, int first, int last) {
  for (int map = first; map <= last; ++map) {
    if (ends_recomputed_group(network, plan, map)) {
      return true;
    }
  }
  return false;
}

// The multiple of `step` that is nearest to the middle.
Index middle(const Range& range, Index step) {
  return (range.begin + range.end + step) / (2 * step) * step;
}

}  // namespace

std::vector<DeferredWeights> deferred_weights(const Network& network, const Plan& plan) {
  std::vector<DeferredWeights> deferred(static_cast<std::size_t>(network.size()));
  for (int layer = 0; plan.ranks > 1 && layer < network.size(); ++layer) {
    const int next = next_at_work(network, layer);
    if (may_be_deferred(network, layer, next)) {
      const int last = layer - 1;
      deferred[static_cast<std::size_t>(layer)] = {
          recomputed_group_ends(network, plan, next, last) ? kNoLayer : next,
          gradients_travel(plan, next, last)};
    }
  }
  return deferred;
}

WeightParts weight_parts(const DeferredWeights& deferred,
                         ConvolutionKernel kernel,
                         const Region& backward) {
  const bool is_deferred = deferred.next != kNoLayer;
  if (backward.empty()) {
    return {};
  }
  if (!deferred.half) {
    return is_deferred ? WeightParts{{}, {backward}} : WeightParts{{backward}, {}};
  }
  const bool by_images = backward.images.size() > 1;
  Range Region::*const cut = by_images ? &Region::images : &Region::rows;
  const Index at = middle(backward.*cut, by_images ? 1 : std::max<Index>(winograd_side(kernel), 1));
  if (at <= (backward.*cut).begin || at >= (backward.*cut).end) {
    return {{backward}, {}};
  }
  Region first = backward;
  Region second = backward;
  (first.*cut).end = (second.*cut).begin = at;
  return is_deferred ? WeightParts{{first}, {second}} : WeightParts{{first, second}, {}};
}

}  // namespace tessera::partitioner
