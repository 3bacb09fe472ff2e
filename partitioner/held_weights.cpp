#include "partitioner/held_weights.h"

#include <algorithm>

#include "partitioner/layer_memory.h"
#include "partitioner/recomputation.h"

namespace partitioner {

namespace {

bool has_weights(const LayerSpec& spec) {
  return std::holds_alternative<Convolution>(spec.operation) ||
         std::holds_alternative<Connected>(spec.operation);
}

// The layer whose gradients come next after those of `layer`, pools left out; kNoLayer where its
// inputs are not simply the layer before.
int next_at_work(const Network& network, int layer) {
  const auto reads_the_one_before = [&](int at) {
    return at > 0 && network.layer(at).inputs == std::vector<int>{at - 1};
  };
  if (!reads_the_one_before(layer)) {
    return kNoLayer;
  }
  const bool pool = std::holds_alternative<MaxPool>(network.layer(layer - 1).operation);
  if (!pool) {
    return layer - 1;
  }
  return reads_the_one_before(layer - 1) ? layer - 2 : kNoLayer;
}

bool travels(const std::vector<Exchange>& exchanges, int first, int last) {
  return std::any_of(exchanges.begin(), exchanges.end(), [&](const Exchange& exchange) {
    return first <= exchange.map && exchange.map <= last &&
           std::any_of(exchange.messages.begin(),
                       exchange.messages.end(),
                       [](const Message& message) { return message.from != message.to; });
  });
}

bool ends_recomputed_group(const Plan& plan, int layer) {
  return plan.recomputes(plan.group(layer)) && plan.group(layer + 1) != plan.group(layer);
}

bool is_held(const Network& network, const Plan& plan, int layer, int next) {
  if (next == kNoLayer || !has_weights(network.layer(layer)) ||
      !normalizes(network.layer(next).operation)) {
    return false;
  }
  const int last = layer - 1;
  for (int map = next; map <= last; ++map) {
    if (ends_recomputed_group(plan, map)) {
      return false;
    }
  }
  return !travels(plan.exchanges, next, last) && !travels(plan.collapses, next, last);
}

}  // namespace

std::vector<int> held_weights(const Network& network, const Plan& plan) {
  std::vector<int> held(static_cast<std::size_t>(network.size()), kNoLayer);
  for (int layer = 0; plan.ranks > 1 && layer < network.size(); ++layer) {
    const int next = next_at_work(network, layer);
    if (is_held(network, plan, layer, next)) {
      held[static_cast<std::size_t>(layer)] = next;
    }
  }
  return held;
}

}  // namespace partitioner
