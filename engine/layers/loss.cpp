#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/detection/head.h"
#include "engine/layers/kinds.h"
#include "engine/layers/layer.h"

namespace tessera::engine {

using partitioner::Loss;
using partitioner::LossForm;

namespace {

// Calls visit(n, c, row, col, target) for each owned cell of the images whose class is known; the
// target is 1 at the cell of the class, 0 elsewhere.
template <class Visit>
void for_each_cell(const Site& site, const Targets& targets, Visit visit) {
  const Region& owned = site.tile().owned;
  const partitioner::MapShape& shape = site.spec().output;
  for (Index n = owned.images.begin; n < owned.images.end && !owned.empty(); ++n) {
    const std::optional<ImageTargets>& target = targets[static_cast<std::size_t>(n)];
    if (!target || !target->label) {
      continue;
    }
    const Index label = *target->label;
    for (Index c = owned.channels.begin; c < owned.channels.end; ++c) {
      for (Index row = owned.rows.begin; row < owned.rows.end; ++row) {
        for (Index col = owned.cols.begin; col < owned.cols.end; ++col) {
          visit(n, c, row, col, (c * shape.rows + row) * shape.cols + col == label ? 1 : 0);
        }
      }
    }
  }
}

JudgedBatch judged_batch(const Pass& pass, const HeadAssignment* assigned) {
  return {*pass.targets, pass.images_seen, assigned, pass.in_last_epochs};
}

}  // namespace

template <class T>
OwnedLoss owned_loss(const Site& site,
                     const Loss& spec,
                     const Pass& pass,
                     const HeadAssignment* assigned,
                     View<const T> output) {
  const Targets& targets = *pass.targets;
  if (spec.form == LossForm::Boxes) {
    const HeadCost cost = for_each_judged_image(head_site(*site.network, site.layer),
                                                judged_batch(pass, assigned),
                                                site.tile().owned,
                                                output,
                                                [](const Region&, const std::vector<double>&) {});
    return {cost.squares,
            {cost.iou_losses, static_cast<double>(cost.matches)},
            {cost.assigned_losses, static_cast<double>(cost.assigned)}};
  }
  double loss = 0;
  for_each_cell(site, targets, [&](Index n, Index c, Index row, Index col, int target) {
    const double value = static_cast<double>(output.at(n, c, row, col));
    if (spec.form == LossForm::SquaredError) {
      loss += spec.weight * 0.5 * (value - target) * (value - target);
    } else if (target == 1) {
      constexpr double kLeast = 1e-30;  // a share that underflowed to 0 costs 69, not infinity
      loss -= spec.weight * std::log(std::max(value, kLeast));
    }
  });
  return {loss, {}, {}};
}

template <class T>
void add_loss_gradient(
    const Site& site, const Pass& pass, double factor, View<const T> output, View<T> gradient) {
  const T scale = static_cast<T>(pass.loss_scale * factor);
  for_each_cell(site, *pass.targets, [&](Index n, Index c, Index row, Index col, int target) {
    gradient.at(n, c, row, col) += scale * (output.at(n, c, row, col) - static_cast<T>(target));
  });
}

template <class T>
void add_head_gradient(const Site& site,
                       const Pass& pass,
                       const HeadAssignment* assigned,
                       View<const T> output,
                       View<T> gradient) {
  const HeadSite head = head_site(*site.network, site.layer);
  const double scale = is_assigned(head) ? pass.object_scale : pass.loss_scale;
  for_each_judged_image(
      head,
      judged_batch(pass, assigned),
      site.tile().owned,
      output,
      [&](const Region& cells, std::vector<double> deltas) {
        const std::vector<double> sent = sent_back(head, output, cells, std::move(deltas));
        std::vector<T> scaled(sent.size());
        std::transform(sent.begin(), sent.end(), scaled.begin(), [&](double delta) {
          return static_cast<T>(-scale * delta);
        });
        add_in(scaled.data(), cells, gradient);
      });
}

template OwnedLoss owned_loss<float>(
    const Site&, const Loss&, const Pass&, const HeadAssignment*, View<const float>);
template OwnedLoss owned_loss<double>(
    const Site&, const Loss&, const Pass&, const HeadAssignment*, View<const double>);
template void add_head_gradient<float>(
    const Site&, const Pass&, const HeadAssignment*, View<const float>, View<float>);
template void add_head_gradient<double>(
    const Site&, const Pass&, const HeadAssignment*, View<const double>, View<double>);
template void add_loss_gradient<float>(
    const Site&, const Pass&, double, View<const float>, View<float>);
template void add_loss_gradient<double>(
    const Site&, const Pass&, double, View<const double>, View<double>);

}  // namespace tessera::engine
