// The laws of a schedule's order, tested on a schedule. It is made in schedule.cpp only; what is
// here looks at the result.

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "partitioner/base/slot.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/forward_parts.h"
#include "partitioner/plan/plan.h"
#include "partitioner/plan/transfers.h"

namespace tessera::partitioner {

namespace {

constexpr ActionIndex kNever;

// Whether disjoint regions within `whole` are all of it. Those that overlap count twice.
bool add_up_to(const std::vector<Region>& regions, const Region& whole) {
  Index volume = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    volume += regions[i].volume();
    for (std::size_t j = 0; j < i; ++j) {
      if (!intersect(regions[i], regions[j]).empty()) {
        return false;
      }
    }
    if (!contains(whole, regions[i])) {
      return false;
    }
  }
  return volume == whole.volume();
}

class ScheduleCheck {
 public:
  ScheduleCheck(const Network& network, const Plan& plan, const Schedule& schedule)
      : network_(network),
        plan_(plan),
        schedule_(schedule),
        trains_(schedule.backward.begin < schedule.backward.end) {}

  std::vector<std::string> run() {
    if (!sections_are_sound()) {
      return std::move(violations_);
    }
    for (const TransferIndex transfer : plan_.transfers.indices()) {
      check_pair(transfer);
      check_place(transfer);
    }
    for (int layer = 0; layer < network_.size(); ++layer) {
      check_phases(layer);
      check_preparation(layer);
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        check_parts(layer, rank);
      }
    }
    check_losses();
    check_clipping();
    return std::move(violations_);
  }

 private:
  using Kind = Action::Kind;
  using Passes = Action::Passes;

  template <class... Args>
  void report(fmt::format_string<Args...> text, Args&&... args) {
    violations_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::string described(TransferIndex transfer) const {
    const Transfer& planned = plan_.transfers[transfer];
    return fmt::format(
        "transfer {} ({} of {})", transfer.number(), name_of(planned.kind), planned.subject);
  }

  bool sections_are_sound() {
    ActionIndex end(0);
    for (const ScheduleSection& named : kScheduleSections) {
      const Section& section = schedule_.*named.actions;
      if (section.begin != end || section.end < section.begin) {
        report("the section {} does not follow the one before", named.name);
      }
      end = section.end;
    }
    if (end != schedule_.actions.end_index()) {
      report("actions stand in no section");
    }
    for (const Action& action : schedule_.actions) {
      const bool moves = action.kind != Kind::Compute;
      if (moves && !plan_.transfers.contains(action.transfer)) {
        report("a {} of transfer {}, which there is not",
               name_of(action.kind),
               action.transfer.number());
      }
    }
    return violations_.empty();
  }

  // Places in the list of all actions that satisfy a condition.
  template <class Holds>
  [[nodiscard]] std::vector<ActionIndex> places(Holds holds) const {
    std::vector<ActionIndex> found;
    for (const ActionIndex i : schedule_.actions.indices()) {
      if (holds(schedule_.actions[i])) {
        found.push_back(i);
      }
    }
    return found;
  }
  [[nodiscard]] std::vector<ActionIndex> places(Kind kind, TransferIndex transfer) const {
    return places(
        [=](const Action& action) { return action.kind == kind && action.transfer == transfer; });
  }
  [[nodiscard]] std::vector<ActionIndex> places(Phase phase, int layer) const {
    return places([=](const Action& action) {
      return action.kind == Kind::Compute && action.phase == phase && action.layer == layer;
    });
  }
  [[nodiscard]] ActionIndex first(Phase phase, int layer) const {
    const std::vector<ActionIndex> all = places(phase, layer);
    return all.empty() ? kNever : all.front();
  }
  [[nodiscard]] ActionIndex last(Phase phase, int layer) const {
    const std::vector<ActionIndex> all = places(phase, layer);
    return all.empty() ? kNever : all.back();
  }
  [[nodiscard]] ActionIndex only(Kind kind, TransferIndex transfer) const {
    const std::vector<ActionIndex> all = places(kind, transfer);
    return all.empty() ? kNever : all.front();
  }

  // A transfer is started once and finished once after that, values of parameters in the step
  // after.
  void check_pair(TransferIndex transfer) {
    const std::vector<ActionIndex> starts = places(Kind::Start, transfer);
    const std::vector<ActionIndex> finishes = places(Kind::Finish, transfer);
    if (starts.empty() && finishes.empty()) {
      return;
    }
    if (starts.size() != 1 || finishes.size() != 1) {
      // Values are under way once per step only: gradients alone, and evaluation, change none.
      if (is_value(transfer) && starts.empty() && finishes.size() == 1 && !trains_) {
        return;
      }
      report("{} starts {} times and finishes {} times",
             described(transfer),
             starts.size(),
             finishes.size());
      return;
    }
    if ((starts[0] < finishes[0]) == is_value(transfer)) {
      report("{} is not finished after it starts", described(transfer));
    }
    const Passes start = schedule_.actions[starts[0]].passes;
    const Passes finish = schedule_.actions[finishes[0]].passes;
    const bool is_gradient = plan_.transfers[transfer].kind == TransferKind::ParameterGradient;
    if (start != (is_gradient ? Passes::Last : Passes::Every) ||
        finish != (is_value(transfer) ? Passes::First : Passes::Every)) {
      report("{} starts in {} passes and finishes in {} passes",
             described(transfer),
             name_of(start),
             name_of(finish));
    }
  }

  [[nodiscard]] bool is_value(TransferIndex transfer) const {
    return plan_.transfers[transfer].kind == TransferKind::ParameterValue;
  }

  void expect_order(ActionIndex before,
                    ActionIndex after,
                    TransferIndex transfer,
                    const char* what) {
    if (before != kNever && after != kNever && before > after) {
      report("{} {}", described(transfer), what);
    }
  }

  // What is sent is complete when a transfer starts; nobody reads what it brings before it is
  // finished.
  void check_place(TransferIndex transfer) {
    const Transfer& planned = plan_.transfers[transfer];
    const ActionIndex start = only(Kind::Start, transfer);
    const ActionIndex finish = only(Kind::Finish, transfer);
    switch (planned.kind) {
      case TransferKind::FeatureMap:
        check_map(transfer, start);
        break;
      case TransferKind::MapGradient:
        check_gradient(transfer, start, finish);
        break;
      case TransferKind::BatchStatistics:
        expect_order(last(Phase::Statistics, planned.subject), start, transfer, "starts too early");
        expect_order(
            finish, first(Phase::Activate, planned.subject), transfer, "is finished too late");
        break;
      case TransferKind::StatisticsGradient:
        expect_order(
            last(Phase::BackwardActivation, planned.subject), start, transfer, "starts too early");
        expect_order(finish,
                     first(Phase::BackwardNormalize, planned.subject),
                     transfer,
                     "is finished too late");
        break;
      case TransferKind::Candidates:
        expect_order(last(Phase::Forward, planned.subject), start, transfer, "starts too early");
        expect_order(finish, first(Phase::Assign, kNoLayer), transfer, "is finished too late");
        break;
      case TransferKind::Assignments:
        expect_order(last(Phase::Assign, kNoLayer), start, transfer, "starts too early");
        expect_order(finish, first(Phase::Loss, kNoLayer), transfer, "is finished too late");
        break;
      case TransferKind::Loss:
        expect_order(last(Phase::Loss, kNoLayer), start, transfer, "starts too early");
        break;
      case TransferKind::ParameterGradient:
        check_parameter_gradient(transfer, start, finish);
        break;
      case TransferKind::ParameterValue:
        check_parameter_value(transfer, start, finish);
        break;
      case TransferKind::GradientNorm:
        expect_order(last(Phase::GradientNorm, kNoLayer), start, transfer, "starts too early");
        expect_order(
            finish, first(Phase::ClipGradients, kNoLayer), transfer, "is finished too late");
        break;
      case TransferKind::RunningStatistics:
        break;
    }
  }

  void check_map(TransferIndex transfer, ActionIndex start) {
    const Transfer& planned = plan_.transfers[transfer];
    if (planned.is_sent != (start != kNever)) {
      report("{} is {}",
             described(transfer),
             planned.is_sent ? "never sent" : "sent, though each has its own");
    }
    if (planned.subject != kImage) {
      expect_order(last(Phase::Forward, planned.subject), start, transfer, "starts too early");
      expect_order(last(Phase::Activate, planned.subject), start, transfer, "starts too early");
    }
  }

  void check_gradient(TransferIndex transfer, ActionIndex start, ActionIndex finish) {
    const Transfer& planned = plan_.transfers[transfer];
    if (trains_ && planned.subject != kImage && start == kNever) {
      report("{} is never sent", described(transfer));
    }
    for (int layer = 0; layer < network_.size(); ++layer) {
      const auto& inputs = network_.layer(layer).inputs;
      if (plan_.group(layer) == planned.group &&
          std::find(inputs.begin(), inputs.end(), planned.subject) != inputs.end()) {
        expect_order(last(Phase::BackwardData, layer), start, transfer, "starts too early");
      }
    }
    if (planned.subject != kImage) {
      for (const Phase phase : {Phase::BackwardActivation, Phase::BackwardData}) {
        expect_order(finish, first(phase, planned.subject), transfer, "is finished too late");
      }
    }
  }

  void check_parameter_gradient(TransferIndex transfer, ActionIndex start, ActionIndex finish) {
    const Transfer& planned = plan_.transfers[transfer];
    const BucketPlan& bucket = plan_.buckets[at(planned.subject)];
    const TransferIndex other = planned.normalized ? bucket.gradients : bucket.all_gradients;
    if (trains_ && start == kNever && only(Kind::Start, other) == kNever) {
      report("{} is never sent", described(transfer));
    }
    if (start != kNever && only(Kind::Start, other) != kNever) {
      report("{} is sent twice", described(transfer));
    }
    for (int layer = bucket.layers.first; layer <= bucket.layers.last; ++layer) {
      for (const Phase phase :
           {Phase::BackwardActivation, Phase::BackwardNormalize, Phase::BackwardWeights}) {
        expect_order(last(phase, layer), start, transfer, "starts too early");
      }
    }
    expect_order(finish, update_of(planned.subject), transfer, "is finished too late");
    expect_order(finish, first(Phase::GradientNorm, kNoLayer), transfer, "is finished too late");
    expect_order(last(Phase::ClipGradients, kNoLayer),
                 update_of(planned.subject),
                 transfer,
                 "is clipped too late");
  }

  [[nodiscard]] ActionIndex update_of(int bucket) const {
    const std::vector<ActionIndex> all = places([=](const Action& action) {
      return action.kind == Kind::Compute && action.phase == Phase::Update &&
             action.bucket == bucket;
    });
    return all.empty() ? kNever : all.front();
  }

  void check_parameter_value(TransferIndex transfer, ActionIndex start, ActionIndex finish) {
    const int bucket = plan_.transfers[transfer].subject;
    const GradientBucket& layers = plan_.buckets[at(bucket)].layers;
    const ActionIndex update = update_of(bucket);
    expect_order(update, start, transfer, "starts too early");
    if ((update != kNever) != (start != kNever)) {
      report("{} is not sent after an update", described(transfer));
    }
    for (int layer = layers.first; layer <= layers.last; ++layer) {
      for (const Phase phase : {Phase::Prepare, Phase::Forward, Phase::Activate}) {
        expect_order(finish, first(phase, layer), transfer, "is finished too late");
      }
    }
  }

  void expect_before(int layer, Phase before, Phase after) {
    const ActionIndex last_before = last(before, layer);
    const ActionIndex first_after = first(after, layer);
    if (last_before != kNever && first_after != kNever && last_before > first_after) {
      report("layer {}: {} comes after {}", layer, name_of(before), name_of(after));
    }
  }

  void expect_once(int layer, Phase phase, bool wanted) {
    if (places(phase, layer).size() != (wanted ? 1U : 0U)) {
      report(
          "layer {}: {} is performed {} times", layer, name_of(phase), places(phase, layer).size());
    }
  }

  void check_phases(int layer) {
    const LayerSpec& spec = network_.layer(layer);
    expect_once(layer, Phase::Activate, has_weights(spec.operation));
    expect_once(layer, Phase::BackwardActivation, trains_ && learns(spec));
    expect_once(layer, Phase::BackwardNormalize, trains_ && takes_batch_statistics(spec));
    expect_once(layer, Phase::BackwardData, trains_ && spec.has_backward);
    expect_before(layer, Phase::Prepare, Phase::Forward);
    expect_before(layer, Phase::Forward, Phase::Statistics);
    expect_before(layer, Phase::Forward, Phase::Activate);
    expect_before(layer, Phase::Statistics, Phase::Activate);
    expect_before(layer, Phase::Recompute, Phase::BackwardActivation);
    expect_before(layer, Phase::Recompute, Phase::BackwardData);
    expect_before(layer, Phase::BackwardActivation, Phase::BackwardNormalize);
    expect_before(layer, Phase::BackwardActivation, Phase::BackwardData);
    expect_before(layer, Phase::BackwardNormalize, Phase::BackwardData);
    expect_before(layer, Phase::BackwardNormalize, Phase::BackwardWeights);
    expect_before(layer, Phase::BackwardActivation, Phase::BackwardWeights);
    for (const int input : network_.layer(layer).inputs) {
      if (input != kImage && last(Phase::Forward, input) > first(Phase::Forward, layer) &&
          first(Phase::Forward, layer) != kNever) {
        report("layer {} runs before layer {}, which it reads", layer, input);
      }
      if (input != kImage && trains_ && network_.takes_gradient(input) &&
          last(Phase::BackwardData, layer) > first(Phase::BackwardData, input)) {
        report("layer {} runs backward before layer {}, which reads it", input, layer);
      }
    }
  }

  // Filters that are prepared stand in the scratch memory that others use as well.
  void check_preparation(int layer) {
    const ActionIndex prepare = first(Phase::Prepare, layer);
    if (prepare == kNever) {
      return;
    }
    for (ActionIndex i = prepare; i < last(Phase::Forward, layer); ++i) {
      const Action& action = schedule_.actions[i];
      if (action.kind == Kind::Compute && action.layer != layer) {
        report("layer {}: {} of layer {} comes between its filters and their use",
               layer,
               name_of(action.phase),
               action.layer);
      }
    }
  }

  void check_parts(int layer, int rank) {
    const LayerPlan& layer_plan = plan_.layers[at(rank)][at(layer)];
    const Tile& tile = plan_.tile(layer, rank);
    std::vector<Region> computed;
    std::set<int> done;
    for (const ActionIndex place : places(Phase::Forward, layer)) {
      const int number = schedule_.actions[place].part;
      if (!done.insert(number).second) {
        report("layer {}: part {} is computed twice", layer, number);
      }
      for (const TilePart& part : layer_plan.forward_parts) {
        if (part.awaits == number) {
          computed.push_back(part.region);
          check_inputs(layer, rank, part.region, place);
        }
      }
    }
    if (!add_up_to(computed, tile.computed)) {
      report("layer {}, rank {}: its parts are not all that it computes", layer, rank);
    }
    if (layer_plan.prepares_filters && first(Phase::Prepare, layer) == kNever) {
      report("layer {}, rank {}: its filters are not prepared", layer, rank);
    }
    if (trains_ && learns(network_.layer(layer))) {
      check_weight_parts(layer, rank);
    }
  }

  void check_weight_parts(int layer, int rank) {
    const WeightParts& parts = plan_.layers[at(rank)][at(layer)].weight_parts;
    std::vector<Region> summed;
    for (const ActionIndex place : places(Phase::BackwardWeights, layer)) {
      const auto& cells = schedule_.actions[place].part == 0 ? parts.at_once : parts.deferred;
      summed.insert(summed.end(), cells.begin(), cells.end());
    }
    if (!add_up_to(summed, plan_.tile(layer, rank).backward)) {
      report("layer {}, rank {}: weights are not summed once over all cells", layer, rank);
    }
  }

  // What the windows of `region` read has been computed by then, or has come.
  void check_inputs(int layer, int rank, const Region& region, ActionIndex place) {
    const auto& inputs = network_.layer(layer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      const int map = inputs[input];
      if (plan_.group(map) == plan_.group(layer)) {
        continue;
      }
      const Region read = intersect(required_input(network_, layer, input, region),
                                    whole_map(network_, map, plan_.batch));
      Index there = 0;
      if (plan_.read_from[at(rank)][at(layer)][input] == own_buffer(rank, map)) {
        there += intersect(own_cells(rank, map), read).volume();
      }
      for (const TransferIndex i : plan_.transfers.indices()) {
        const Transfer& transfer = plan_.transfers[i];
        if (transfer.kind == TransferKind::FeatureMap && transfer.subject == map &&
            transfer.group == plan_.group(layer) && is_finished(i, place)) {
          for (const Message& message : messages_of(plan_, transfer)) {
            there += message.to == rank ? intersect(message.payload.cells(), read).volume() : 0;
          }
        }
      }
      if (there != read.volume()) {
        report(
            "layer {}, rank {}: part of map {} has not come yet when it is read", layer, rank, map);
      }
    }
  }

  // What a rank has of a map without a message, before a pass or by computing, and where.
  [[nodiscard]] Region own_cells(int rank, int map) const {
    return map == kImage ? image_region(network_, plan_, rank) : plan_.tile(map, rank).owned;
  }
  [[nodiscard]] BufferIndex own_buffer(int rank, int map) const {
    return map == kImage ? image_buffer(plan_, rank) : plan_.producer(rank, map);
  }

  [[nodiscard]] bool is_finished(TransferIndex transfer, ActionIndex place) const {
    const ActionIndex finish = only(Kind::Finish, transfer);
    return finish != kNever && finish < place;
  }

  // Gradients are clipped once, where that is asked for and parameters are changed.
  void check_clipping() {
    const auto count = [this](Phase phase) { return places(phase, kNoLayer).size(); };
    const bool updates = update_of(0) != kNever;
    const std::size_t wanted = network_.max_gradient_norm > 0 && updates ? 1 : 0;
    std::size_t rounds = 0;
    for (const TransferIndex i : plan_.transfers.indices()) {
      const bool is_norm = plan_.transfers[i].kind == TransferKind::GradientNorm;
      rounds += is_norm && only(Kind::Start, i) != kNever ? 1 : 0;
    }
    if (count(Phase::GradientNorm) != wanted || count(Phase::ClipGradients) != wanted ||
        rounds != 2 * wanted) {
      report("gradients are clipped {} times by {} norms in {} rounds",
             count(Phase::ClipGradients),
             count(Phase::GradientNorm),
             rounds);
    }
  }

  void check_losses() {
    const ActionIndex computed = first(Phase::Loss, kNoLayer);
    const int last_layer = network_.size() - 1;
    if (computed != kNever && computed < last(Phase::Forward, last_layer)) {
      report("the loss is computed before the output");
    }
  }

  const Network& network_;
  const Plan& plan_;
  const Schedule& schedule_;
  bool trains_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> check_schedule(const Network& network,
                                        const Plan& plan,
                                        const Schedule& schedule) {
  return ScheduleCheck(network, plan, schedule).run();
}

}  // namespace tessera::partitioner
