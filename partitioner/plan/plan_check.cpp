// The invariants of the geometry, tested on a plan. It is derived in group_geometry.cpp and
// plan.cpp only; what is here looks at the result.

#include <algorithm>
#include <fmt/ostream.h>

#include "partitioner/plan/plan.h"

template <>
struct fmt::formatter<tessera::Region> : ostream_formatter {};
template <>
struct fmt::formatter<tessera::Range> : ostream_formatter {};

namespace tessera::partitioner {

namespace {

// Whether the regions are disjoint and together are all of `whole`.
bool covers_once(const std::vector<Region>& regions, const Region& whole) {
  Index volume = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    volume += regions[i].volume();
    if (!contains(whole, regions[i])) {
      return false;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!intersect(regions[i], regions[j]).empty()) {
        return false;
      }
    }
  }
  return volume == whole.volume();
}

// The same of runs of elements.
bool covers_once(std::vector<Range> runs, const Range& whole) {
  std::sort(
      runs.begin(), runs.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  Index reached = whole.begin;
  for (const Range& run : runs) {
    if (run.empty()) {
      continue;
    }
    if (run.begin != reached) {
      return false;
    }
    reached = run.end;
  }
  return reached == whole.end;
}

class PlanCheck {
 public:
  PlanCheck(const Network& network, const Plan& plan) : network_(network), plan_(plan) {}

  std::vector<std::string> run() {
    for (int map = kImage; map < network_.size(); ++map) {
      check_ownership(map);
      check_tiles(map);
    }
    if (!violations_.empty()) {
      return std::move(violations_);  // what is asked below makes no sense of such tiles
    }
    for (int layer = 0; layer < network_.size(); ++layer) {
      for (std::size_t input = 0; input < network_.layer(layer).inputs.size(); ++input) {
        check_input(layer, input);
        check_gradients(layer, input);
      }
    }
    for (const Transfer& transfer : plan_.transfers) {
      if (transfer.kind == TransferKind::FeatureMap || transfer.kind == TransferKind::MapGradient) {
        check_messages(transfer);
      }
    }
    for (const ParameterPlan& parameter : plan_.parameters) {
      check_parameter(parameter);
    }
    if (violations_.empty()) {
      return check_schedule(network_, plan_, plan_.schedule);
    }
    return std::move(violations_);
  }

 private:
  template <class... Args>
  void report(fmt::format_string<Args...> text, Args&&... args) {
    violations_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void check_ownership(int map) {
    std::vector<Region> owned;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (!plan_.tile(map, rank).owned.empty()) {
        owned.push_back(plan_.tile(map, rank).owned);
      }
    }
    if (!covers_once(owned, whole_map(network_, map, plan_.batch))) {
      report("map {}: its cells are not each owned by exactly one rank", map);
    }
  }

  void check_tiles(int map) {
    const Region whole = whole_map(network_, map, plan_.batch);
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Tile& tile = plan_.tile(map, rank);
      if (!contains(tile.computed, tile.owned) || !contains(whole, tile.computed)) {
        report("map {}, rank {}: computes {}, owns {}", map, rank, tile.computed, tile.owned);
      }
      if (!contains(tile.computed, tile.backward) || !contains(tile.backward, tile.owned)) {
        report("map {}, rank {}: backward over {}, owns {}", map, rank, tile.backward, tile.owned);
      }
      const BufferIndex home = plan_.producer(rank, map);
      if (!tile.computed.empty() &&
          (home == kNoBuffer || !contains(plan_.buffer(rank, home).region, tile.computed))) {
        report("map {}, rank {}: no buffer holds what is computed", map, rank);
      }
    }
  }

  // What a layer reads is in its buffer, and got there exactly once: computed by the tile itself
  // inside a group, owned or sent across groups.
  void check_input(int layer, std::size_t input) {
    const int map = network_.layer(layer).inputs[input];
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Region required =
          required_input(network_, layer, input, plan_.tile(layer, rank).computed);
      if (required.empty()) {
        continue;
      }
      const BufferIndex buffer =
          plan_.read_from[static_cast<std::size_t>(rank)][static_cast<std::size_t>(layer)][input];
      if (buffer == kNoBuffer || !contains(plan_.buffer(rank, buffer).region, required)) {
        report("layer {}, rank {}: its buffer lacks part of {}", layer, rank, required);
        continue;
      }
      const Region inside = intersect(required, whole_map(network_, map, plan_.batch));
      if (plan_.group(map) == plan_.group(layer)) {
        if (!contains(plan_.tile(map, rank).computed, inside)) {
          report("layer {}, rank {}: requires {} of map {}, which it does not compute",
                 layer,
                 rank,
                 inside,
                 map);
        }
      } else {
        check_arrivals(layer, map, rank, buffer, inside);
      }
    }
  }

  void check_arrivals(int layer, int map, int rank, BufferIndex buffer, const Region& inside) {
    const BufferIndex home = plan_.producer(rank, map);
    std::vector<Region> arrivals;
    if (buffer == home) {
      arrivals.push_back(intersect(plan_.tile(map, rank).owned, inside));
    }
    for (const Transfer& transfer : plan_.transfers) {
      if (transfer.kind != TransferKind::FeatureMap || transfer.subject != map ||
          transfer.group != plan_.group(layer)) {
        continue;
      }
      for (const Message& message : transfer.messages) {
        if (message.to == rank) {
          arrivals.push_back(intersect(message.payload.cells(), inside));
        }
      }
    }
    std::erase_if(arrivals, [](const Region& region) { return region.empty(); });
    if (!covers_once(arrivals, inside)) {
      report("layer {}, rank {}: cells of {} of map {} do not arrive exactly once",
             layer,
             rank,
             inside,
             map);
    }
  }

  // What a layer's backward pass adds to a map of its own group goes on from there, or is sent to
  // its owner exactly once where the map's gradient is reduced there.
  void check_gradients(int layer, std::size_t input) {
    const int map = network_.layer(layer).inputs[input];
    if (plan_.group(map) != plan_.group(layer) || !network_.takes_gradient(map)) {
      return;
    }
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Region added =
          intersect(required_input(network_, layer, input, plan_.tile(layer, rank).backward),
                    whole_map(network_, map, plan_.batch));
      std::vector<Region> taken{intersect(plan_.tile(map, rank).backward, added)};
      for (const Transfer& transfer : plan_.transfers) {
        if (transfer.kind != TransferKind::MapGradient || transfer.subject != map ||
            transfer.group != plan_.group(map)) {
          continue;
        }
        for (const Message& message : transfer.messages) {
          if (message.to == rank) {
            taken.push_back(intersect(message.payload.cells(), added));
          }
        }
      }
      std::erase_if(taken, [](const Region& region) { return region.empty(); });
      if (!added.empty() && !covers_once(taken, added)) {
        report("layer {}, rank {}: the gradient of {} of map {} does not reach its owners once",
               layer,
               rank,
               added,
               map);
      }
    }
  }

  void check_messages(const Transfer& transfer) {
    for (const Message& message : transfer.messages) {
      const Region& cells = message.payload.cells();
      if (!contains(plan_.tile(transfer.subject, message.from).owned, cells)) {
        report("map {}: rank {} sends {}, which it does not own",
               transfer.subject,
               message.from,
               cells);
      }
      bool held = false;
      for (const Buffer& buffer : plan_.buffers[static_cast<std::size_t>(message.to)]) {
        held = held || (buffer.map == transfer.subject && contains(buffer.region, cells));
      }
      if (!held) {
        report("map {}: rank {} has no buffer for {}", transfer.subject, message.to, cells);
      }
    }
  }

  void check_parameter(const ParameterPlan& parameter) {
    std::vector<std::vector<Range>> owned(static_cast<std::size_t>(plan_.copies()));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto& runs = parameter.owned[static_cast<std::size_t>(rank)];
      auto& copy_runs = owned[static_cast<std::size_t>(plan_.copy_of(rank))];
      copy_runs.insert(copy_runs.end(), runs.begin(), runs.end());
    }
    for (const std::vector<Range>& runs : owned) {
      if (!covers_once(runs, {0, parameter.shape.channels * parameter.shape.row})) {
        report("layer {}: elements of a parameter are not each owned by exactly one rank",
               parameter.layer);
      }
    }
    std::vector<std::vector<Range>> arrivals = parameter.owned;  // by rank
    for (const Message& message : parameter.messages) {
      const Range& sent = message.payload.element_run();
      if (plan_.copy_of(message.from) != plan_.copy_of(message.to)) {
        report("layer {}: elements of a parameter leave their replica", parameter.layer);
      }
      const auto& runs = parameter.owned[static_cast<std::size_t>(message.from)];
      if (std::none_of(
              runs.begin(), runs.end(), [&](const Range& run) { return contains(run, sent); })) {
        report("layer {}: rank {} sends elements of a parameter that it does not own",
               parameter.layer,
               message.from);
      }
      arrivals[static_cast<std::size_t>(message.to)].push_back(sent);
    }
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      check_parameter_on(parameter, rank, arrivals[static_cast<std::size_t>(rank)]);
    }
  }

  // A rank holds the rows of all channels that it computes, each element its own or sent once.
  void check_parameter_on(const ParameterPlan& parameter,
                          int rank,
                          const std::vector<Range>& arrivals) {
    const Range& held = parameter.required[static_cast<std::size_t>(rank)];
    const Region& computed = plan_.tile(parameter.layer, rank).computed;
    if (!computed.empty() && !contains(held, computed.channels)) {
      report(
          "layer {}, rank {}: computes channels without their parameters", parameter.layer, rank);
    }
    for (const Range& run : parameter.owned[static_cast<std::size_t>(rank)]) {
      const auto& updated = parameter.updated[static_cast<std::size_t>(rank)];
      if (std::none_of(updated.begin(), updated.end(), [&](const Range& all) {
            return contains(all, run);
          })) {
        report("layer {}, rank {}: owns elements of a parameter and does not update them",
               parameter.layer,
               rank);
      }
    }
    if (!covers_once(arrivals,
                     {held.begin * parameter.shape.row, held.end * parameter.shape.row})) {
      report("layer {}, rank {}: elements of a parameter do not arrive exactly once",
             parameter.layer,
             rank);
    }
  }

  const Network& network_;
  const Plan& plan_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> check(const Network& network, const Plan& plan) {
  return PlanCheck(network, plan).run();
}

}  // namespace tessera::partitioner
