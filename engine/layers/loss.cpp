#include <algorithm>
#include <cmath>

#include "engine/layers/kinds.h"
#include "engine/layers/layer.h"

namespace tessera::engine {

namespace {

// Calls visit(n, c, row, col, target) for each owned cell of the images that have a label; the
// target is 1 at the label, 0 elsewhere.
template <class Visit>
void for_each_target(const Site& site, const std::vector<int>& labels, Visit visit) {
  const Region& owned = site.tile().owned;
  const partitioner::MapShape& shape = site.spec().output;
  for (Index n = owned.images.begin; n < owned.images.end && !owned.empty(); ++n) {
    const Index label = labels[static_cast<std::size_t>(n)];
    if (label < 0) {
      continue;
    }
    for (Index c = owned.channels.begin; c < owned.channels.end; ++c) {
      for (Index row = owned.rows.begin; row < owned.rows.end; ++row) {
        for (Index col = owned.cols.begin; col < owned.cols.end; ++col) {
          visit(n, c, row, col, (c * shape.rows + row) * shape.cols + col == label ? 1 : 0);
        }
      }
    }
  }
}

}  // namespace

int loss_layer(const partitioner::Network& network) {
  int layer = network.size() - 1;
  const auto is = [&]<class Kind>(Kind) {
    return layer >= 0 && std::holds_alternative<Kind>(network.layer(layer).operation);
  };
  int cost = -1;
  while (is(partitioner::Cost{}) || is(partitioner::Dropout{})) {
    cost = is(partitioner::Cost{}) ? layer : cost;
    layer = network.layer(layer).inputs[0];
  }
  return is(partitioner::Softmax{}) ? layer : cost;
}

template <class T>
double owned_loss(const Site& site, const std::vector<int>& labels, View<const T> output) {
  const auto* cost = std::get_if<partitioner::Cost>(&site.spec().operation);
  double loss = 0;
  for_each_target(site, labels, [&](Index n, Index c, Index row, Index col, int target) {
    const double value = static_cast<double>(output.at(n, c, row, col));
    if (cost != nullptr) {
      loss += cost->scale * 0.5 * (value - target) * (value - target);
    } else if (target == 1) {
      constexpr double kLeast = 1e-30;  // a share that underflowed to 0 costs 69, not infinity
      loss -= std::log(std::max(value, kLeast));
    }
  });
  return loss;
}

template <class T>
void add_loss_gradient(
    const Site& site, const Pass& pass, double factor, View<const T> output, View<T> gradient) {
  const T scale = static_cast<T>(pass.loss_scale * factor);
  for_each_target(site, *pass.labels, [&](Index n, Index c, Index row, Index col, int target) {
    gradient.at(n, c, row, col) += scale * (output.at(n, c, row, col) - static_cast<T>(target));
  });
}

template double owned_loss<float>(const Site&, const std::vector<int>&, View<const float>);
template double owned_loss<double>(const Site&, const std::vector<int>&, View<const double>);
template void add_loss_gradient<float>(
    const Site&, const Pass&, double, View<const float>, View<float>);
template void add_loss_gradient<double>(
    const Site&, const Pass&, double, View<const double>, View<double>);

}  // namespace tessera::engine
