#include "engine/execution/action_places.h"

#include "partitioner/memory/activation_arena.h"
#include "partitioner/plan/forward_parts.h"

namespace tessera::engine {

using partitioner::Action;
using partitioner::ActionIndex;
using partitioner::kImage;
using partitioner::PassSeconds;
using partitioner::Phase;
using partitioner::Transfer;
using partitioner::TransferKind;

namespace {

class Places {
 public:
  Places(const partitioner::Network& network,
         const partitioner::Plan& plan,
         const partitioner::Schedule& schedule)
      : network_(network), plan_(plan), schedule_(schedule), groups_(groups_of(plan)) {}

  [[nodiscard]] ActionPlaces all() const {
    ActionPlaces places;
    places.reserve(schedule_.actions.size());
    int before = kImage;
    for (const ActionIndex i : schedule_.actions.indices()) {
      const Action& action = schedule_.actions[i];
      before = action.kind == Action::Kind::Compute ? compute_time(i, before)
                                                    : transfer_time(action, before);
      places.push_back(
          {before, action.layer < 0 ? layer_at(before) : action.layer, pass_of(i, action)});
    }
    return places;
  }

 private:
  [[nodiscard]] int compute_time(ActionIndex i, int before) const {
    const Action& action = schedule_.actions[i];
    switch (action.phase) {
      case Phase::Prepare:
      case Phase::Forward:
      case Phase::Statistics:
      case Phase::Activate:
        return action.layer;
      case Phase::Restore:  // for the action that reads the map
        return compute_time(i + 1, before);
      case Phase::Recompute:
        return recompute_time(network_,
                              groups_[static_cast<std::size_t>(plan_.group(action.layer))].last,
                              action.layer);
      case Phase::BackwardActivation:
      case Phase::BackwardNormalize:
        return gradient_time(network_, action.layer);
      case Phase::BackwardData:
        return gradient_time(network_, action.layer) + 1;
      case Phase::BackwardWeights:
        return action.part == 0 ? gradient_time(network_, action.layer) + 1 : before;
      case Phase::Assign:
      case Phase::Loss:
      case Phase::GradientNorm:
      case Phase::ClipGradients:
      case Phase::Update:
        break;
    }
    return before;
  }

  [[nodiscard]] int transfer_time(const Action& action, int before) const {
    const Transfer& transfer = plan_.transfers[action.transfer];
    const bool starts = action.kind == Action::Kind::Start;
    const int subject = transfer.subject;
    switch (transfer.kind) {
      case TransferKind::FeatureMap:
        return starts ? subject : reader(transfer);
      case TransferKind::MapGradient:
        return starts && transfer.group != plan_.group(subject)
                   ? gradient_time(network_, reader(transfer)) + 1
                   : gradient_time(network_, subject);
      case TransferKind::BatchStatistics:
        return subject;
      case TransferKind::StatisticsGradient:
        return gradient_time(network_, subject);
      case TransferKind::ParameterValue:
        return starts ? before : plan_.buckets[static_cast<std::size_t>(subject)].layers.first;
      case TransferKind::Candidates:
      case TransferKind::Assignments:
      case TransferKind::Loss:
      case TransferKind::GradientNorm:
      case TransferKind::ParameterGradient:
      case TransferKind::RunningStatistics:
        break;
    }
    return before;
  }

  [[nodiscard]] int reader(const Transfer& transfer) const {
    return first_reader(network_, plan_, transfer.subject, transfer.group);
  }

  // The layer that is at work at a time.
  [[nodiscard]] int layer_at(int time) const {
    const int size = network_.size();
    return time < size ? time : size - 1 - (time - size - 1) / (size + 2);
  }

  [[nodiscard]] double PassSeconds::*pass_of(ActionIndex i, const Action& action) const {
    if (i < schedule_.forward.end) {
      return &PassSeconds::forward_s;
    }
    if (i < schedule_.backward.begin || i >= schedule_.backward.end) {
      return nullptr;
    }
    const bool weights =
        action.kind == Action::Kind::Compute && action.phase == Phase::BackwardWeights;
    return weights ? &PassSeconds::weights_s : &PassSeconds::backward_s;
  }

  const partitioner::Network& network_;
  const partitioner::Plan& plan_;
  const partitioner::Schedule& schedule_;
  std::vector<partitioner::LayerRun> groups_;
};

}  // namespace

ActionPlaces action_places(const partitioner::Network& network,
                           const partitioner::Plan& plan,
                           const partitioner::Schedule& schedule) {
  return Places(network, plan, schedule).all();
}

}  // namespace tessera::engine
