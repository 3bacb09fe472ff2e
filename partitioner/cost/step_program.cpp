#include "partitioner/cost/step_program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "partitioner/cost/compute_model.h"
#include "partitioner/cost/step_messages.h"
#include "partitioner/network/layer_memory.h"
#include "partitioner/plan/deferred_weights.h"
#include "partitioner/plan/forward_parts.h"
#include "partitioner/plan/plan_totals.h"

namespace tessera::partitioner {

namespace {

class ProgramMaker {
 public:
  ProgramMaker(const Network& network, const Plan& plan, const ClusterProfile& cluster)
      : network_(network),
        plan_(plan),
        cluster_(cluster),
        groups_(groups_of(plan)),
        held_weights_(plan.deferred) {
    program_.ranks = plan.ranks;
    for (const Exchange& exchange : plan.exchanges) {
      first_reader_.push_back(first_reader(network, plan, exchange.map, exchange.group));
    }
  }

  StepProgram make(const CostOptions& options) {
    for (int layer = 0; layer < network_.size(); ++layer) {
      seconds_.push_back(seconds_of_ranks(layer));
      shares_.push_back(shares_of_parts(layer));
    }
    for (const SumBucket& layers : sum_buckets(network_, plan_.sums)) {
      buckets_.push_back(bucket(layers));
    }
    update();
    for (Index pass = 0; pass < options.passes; ++pass) {
      add_map_transfers();
      forward(pass == 0);
      if (options.has_loss) {
        sum_loss();
      }
      backward(pass + 1 == options.passes);
    }
    for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
      finish(StepPart::GradientSum, bucket->first, bucket->gradients);
    }
    return std::move(program_);
  }

 private:
  static constexpr int kNoTransfer = -1;

  int add_transfer(PricedTransfer transfer) {
    program_.transfers.push_back(std::move(transfer));
    return static_cast<int>(program_.transfers.size()) - 1;
  }

  int map_transfer(const Exchange& exchange, bool forward) {
    PricedTransfer transfer;
    transfer.in_order = !forward;
    transfer.waits_for_sends = false;
    for (const Message& message : exchange.messages) {
      if (message.from != message.to) {
        const double bytes = region_bytes(message.region);
        transfer.parcels.push_back(forward ? Parcel{message.from, message.to, bytes}
                                           : Parcel{message.to, message.from, bytes});
      }
    }
    return add_transfer(std::move(transfer));
  }

  // Of one pass.
  void add_map_transfers() {
    forward_.clear();
    backward_.clear();
    collapses_.clear();
    for (const Exchange& exchange : plan_.exchanges) {
      const bool sent = is_sent_forward(plan_, exchange);
      forward_.push_back(sent ? map_transfer(exchange, true) : kNoTransfer);
      backward_.push_back(exchange.map != kImage ? map_transfer(exchange, false) : kNoTransfer);
    }
    for (const Exchange& collapse : plan_.collapses) {
      collapses_.push_back(map_transfer(collapse, false));
    }
  }

  [[nodiscard]] std::vector<LayerSeconds> seconds_of_ranks(int layer) const {
    std::vector<LayerSeconds> seconds;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Tile& tile = plan_.tile(layer, rank);
      seconds.push_back(layer_seconds(network_,
                                      layer,
                                      plan_.kernels_of(layer),
                                      cluster_.device(rank),
                                      tile.computed,
                                      tile.backward));
    }
    return seconds;
  }

  void start(StepPart part, int layer, int transfer) {
    if (transfer != kNoTransfer) {
      program_.actions.push_back({StepAction::Kind::Start, part, layer, transfer, {}});
    }
  }
  void finish(StepPart part, int layer, int transfer) {
    if (transfer != kNoTransfer) {
      program_.actions.push_back({StepAction::Kind::Finish, part, layer, transfer, {}});
    }
  }

  // By the exchanges that have to be there, none at first: the share of each rank's forward pass
  // that it computes then.
  [[nodiscard]] std::vector<std::vector<double>> shares_of_parts(int layer) const {
    std::size_t parts = 1;
    for (std::size_t i = 0; i < plan_.exchanges.size(); ++i) {
      if (first_reader_[i] == layer) {
        parts = std::max(parts, static_cast<std::size_t>(plan_.exchanges[i].part) + 1);
      }
    }
    std::vector shares(parts + 1, std::vector<double>(static_cast<std::size_t>(plan_.ranks)));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      const Region& computed = plan_.tile(layer, rank).computed;
      const auto& of_rank = plan_.layers[at][static_cast<std::size_t>(layer)].forward_parts;
      for (const TilePart& part : of_rank) {
        shares[static_cast<std::size_t>(part.awaits)][at] +=
            static_cast<double>(part.region.volume()) / static_cast<double>(computed.volume());
      }
      if (of_rank.empty()) {
        shares[parts][at] = 1;
      }
    }
    return shares;
  }

  template <class Seconds>
  void compute(StepPart part, int layer, Seconds seconds_of) {
    compute(
        part, layer, seconds_of, std::vector<double>(static_cast<std::size_t>(plan_.ranks), 1.0));
  }

  // Some share of it, on each rank.
  template <class Seconds>
  void compute(StepPart part, int layer, Seconds seconds_of, const std::vector<double>& shares) {
    StepAction action{StepAction::Kind::Compute, part, layer, kNoTransfer, {}};
    const auto& of_ranks = seconds_[static_cast<std::size_t>(layer)];
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      action.seconds.push_back(shares[rank] * seconds_of(of_ranks[rank]));
    }
    program_.actions.push_back(std::move(action));
  }

  void start_forward(int map) {
    for (std::size_t i = 0; i < plan_.exchanges.size(); ++i) {
      if (plan_.exchanges[i].map == map) {
        start(StepPart::ForwardMaps, map, forward_[i]);
      }
    }
  }

  // With the first pass of a step new values are on their way.
  void forward(bool begins_step) {
    start_forward(kImage);
    for (int layer = 0; layer < network_.size(); ++layer) {
      for (const Bucket& bucket : buckets_) {
        if (begins_step && bucket.first == layer) {
          finish(StepPart::ValueShare, layer, bucket.values);
        }
      }
      const auto& shares = shares_[static_cast<std::size_t>(layer)];
      for (std::size_t there = 0; there < shares.size(); ++there) {
        for (std::size_t i = 0; i < plan_.exchanges.size(); ++i) {
          if (first_reader_[i] == layer && plan_.exchanges[i].part + 1 == static_cast<int>(there)) {
            finish(StepPart::ForwardMaps, plan_.exchanges[i].map, forward_[i]);
          }
        }
        compute(
            StepPart::Forward,
            layer,
            [](const LayerSeconds& of) { return of.forward_s; },
            shares[there]);
      }
      const int sums = statistics(layer, &Tile::owned, kForwardStatistics);
      start(StepPart::ForwardStatistics, layer, sums);
      finish(StepPart::ForwardStatistics, layer, sums);
      compute(StepPart::Forward, layer, [](const LayerSeconds& of) { return of.other_forward_s; });
      start_forward(layer);
    }
  }

  // With the last pass of a step gradients are complete, and their sums begin.
  void backward(bool ends_step) {
    int held = kNoLayer;
    for (int layer = network_.size() - 1; layer >= 0; --layer) {
      recompute_before(layer);
      for (std::size_t i = 0; i < plan_.exchanges.size(); ++i) {
        if (plan_.exchanges[i].map == layer) {
          finish(StepPart::BackwardMaps, layer, backward_[i]);
        }
      }
      for (std::size_t i = 0; i < plan_.collapses.size(); ++i) {
        if (plan_.collapses[i].map == layer) {
          start(StepPart::BackwardMaps, layer, collapses_[i]);
          finish(StepPart::BackwardMaps, layer, collapses_[i]);
        }
      }
      compute(
          StepPart::Backward, layer, [](const LayerSeconds& of) { return of.other_backward_s; });
      const int sums = statistics(layer, &Tile::backward, kBackwardStatistics);
      start(StepPart::BackwardStatistics, layer, sums);
      if (held != kNoLayer && held_weights_[static_cast<std::size_t>(held)].next == layer) {
        weights(held, &WeightParts::deferred);
        start_gradients(std::exchange(held, kNoLayer), layer + 1, ends_step);
      }
      finish(StepPart::BackwardStatistics, layer, sums);
      compute(StepPart::Backward, layer, [](const LayerSeconds& of) { return of.backward_data_s; });
      for (std::size_t i = 0; i < plan_.exchanges.size(); ++i) {
        if (first_reader_[i] == layer) {
          start(StepPart::BackwardMaps, plan_.exchanges[i].map, backward_[i]);
        }
      }
      weights(layer, &WeightParts::at_once);
      if (held_weights_[static_cast<std::size_t>(layer)].next != kNoLayer) {
        held = layer;
      } else if (held == kNoLayer) {
        start_gradients(layer, layer, ends_step);
      }
    }
  }

  void weights(int layer, std::vector<Region> WeightParts::*part) {
    const DeferredWeights& held = held_weights_[static_cast<std::size_t>(layer)];
    std::vector<double> shares(static_cast<std::size_t>(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Region& backward = plan_.tile(layer, rank).backward;
      const auto parts = weight_parts(held, plan_.kernels_of(layer).backward_weights, backward);
      for (const Region& cells : parts.*part) {
        shares[static_cast<std::size_t>(rank)] +=
            static_cast<double>(cells.volume()) / static_cast<double>(backward.volume());
      }
    }
    const auto seconds = [](const LayerSeconds& of) { return of.backward_weights_s; };
    compute(StepPart::Backward, layer, seconds, shares);
  }

  // The gradients of all weights from layer `complete` to `last` are there now.
  void start_gradients(int last, int complete, bool ends_step) {
    for (int of = last; of >= complete && ends_step; --of) {
      for (const Bucket& bucket : buckets_) {
        if (bucket.first == of) {
          start(StepPart::GradientSum, of, bucket.gradients);
        }
      }
    }
  }

  // Where a recomputed group ends, what runs again of it.
  void recompute_before(int last) {
    const int group = plan_.group(last);
    const LayerRun layers = groups_[static_cast<std::size_t>(group)];
    if (layers.last != last || !plan_.recomputes(group)) {
      return;
    }
    const auto again = recomputed_work(network_, layers, plan_.collapses);
    for (int layer = layers.first; layer <= last; ++layer) {
      const RecomputedLayer& how = again[static_cast<std::size_t>(layer - layers.first)];
      if (how.runs) {
        compute(StepPart::Recompute, layer, [&how](const LayerSeconds& of) {
          return recompute_seconds(of, how);
        });
      }
    }
  }

  int statistics(int layer, Region Tile::*contributes, double numbers) {
    if (!normalizes(network_.layer(layer).operation)) {
      return kNoTransfer;
    }
    PricedTransfer transfer;
    transfer.in_order = true;
    for_each_statistics(
        plan_.tiles[map_slot(layer)], contributes, numbers, [&](const Parcel& parcel) {
          transfer.parcels.push_back(parcel);
        });
    return add_transfer(std::move(transfer));
  }

  void sum_loss() {
    constexpr double kNumberBytes = 8;
    for (int round = 0; round < 2; ++round) {
      PricedTransfer transfer;
      transfer.in_order = true;
      for (int from = 0; from < plan_.ranks; ++from) {
        for (int to = 0; to < plan_.ranks; ++to) {
          if (from != to) {
            transfer.parcels.push_back({from, to, kNumberBytes});
          }
        }
      }
      const int number = add_transfer(std::move(transfer));
      start(StepPart::Loss, -1, number);
      finish(StepPart::Loss, -1, number);
    }
  }

  // Parameters that travel together.
  struct Bucket {
    int first = 0;  // layer
    int gradients = kNoTransfer;
    int values = kNoTransfer;
    std::vector<double> update_s;  // [rank]
  };
  using Elements = std::map<std::pair<int, int>, Index>;  // from one rank to another

  Bucket bucket(const SumBucket& layers) {
    Elements gradients;
    Elements values;
    Bucket result;
    result.first = layers.first;
    result.update_s.resize(static_cast<std::size_t>(plan_.ranks));
    for (int layer = layers.first; layer <= layers.last; ++layer) {
      for (const SharedParameter& parameter :
           shared_parameters(network_, layer, plan_.tiles[map_slot(layer)])) {
        for_each_message(parameter, [&](int owner, int holder, Index elements) {
          values[{owner, holder}] += elements;
          if (parameter.gradient_sent) {
            gradients[{holder, owner}] += elements;
          }
        });
        for_each_share(parameter, [&](int owner, Index elements) {
          result.update_s[static_cast<std::size_t>(owner)] +=
              static_cast<double>(elements) / cluster_.device(owner).updated_weights_per_s;
        });
      }
    }
    result.gradients = bulk_transfer(gradients, true);
    result.values = bulk_transfer(values, false);
    return result;
  }

  int bulk_transfer(const Elements& elements, bool in_order) {
    PricedTransfer transfer;
    transfer.in_order = in_order;
    transfer.bulk = true;
    for (const auto& [pair, count] : elements) {
      const Index bytes = sum_message_bytes(plan_.sums.precision, count, kSingleBytes);
      transfer.parcels.push_back({pair.first, pair.second, static_cast<double>(bytes)});
    }
    return add_transfer(std::move(transfer));
  }

  // Of the step before: its values travel during this step's forward pass.
  void update() {
    for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
      program_.actions.push_back({StepAction::Kind::Compute,
                                  StepPart::Update,
                                  bucket->first,
                                  kNoTransfer,
                                  bucket->update_s});
      start(StepPart::ValueShare, bucket->first, bucket->values);
    }
  }

  const Network& network_;
  const Plan& plan_;
  const ClusterProfile& cluster_;
  std::vector<LayerRun> groups_;
  std::vector<DeferredWeights> held_weights_;
  std::vector<int> forward_;  // transfers, by exchange of the plan
  std::vector<int> backward_;
  std::vector<int> first_reader_;
  std::vector<int> collapses_;                            // by collapse of the plan
  std::vector<std::vector<LayerSeconds>> seconds_;        // [layer][rank]
  std::vector<std::vector<std::vector<double>>> shares_;  // by layer, see shares_of_parts()
  std::vector<Bucket> buckets_;                           // in the order of the backward pass
  StepProgram program_;
};

}  // namespace

const char* name_of(StepPart part) {
  switch (part) {
    case StepPart::ForwardMaps:
      return "forward maps";
    case StepPart::Forward:
      return "forward";
    case StepPart::ForwardStatistics:
      return "forward statistics";
    case StepPart::Loss:
      return "loss";
    case StepPart::Recompute:
      return "recomputing";
    case StepPart::BackwardMaps:
      return "backward maps";
    case StepPart::Backward:
      return "backward";
    case StepPart::BackwardStatistics:
      return "backward statistics";
    case StepPart::GradientSum:
      return "gradient sum";
    case StepPart::Update:
      return "update";
    case StepPart::ValueShare:
      return "value share";
  }
  return "";
}

StepProgram step_program(const Network& network,
                         const Plan& plan,
                         const ClusterProfile& cluster,
                         const CostOptions& options) {
  return ProgramMaker(network, plan, cluster).make(options);
}

}  // namespace tessera::partitioner
