#include "partitioner/plan/plan_fingerprint.h"

#include "partitioner/base/fingerprint.h"

namespace tessera::partitioner {

namespace {

class PlanFingerprint : public Fingerprint {
 public:
  using Fingerprint::add;
  void add(const Range& range) {
    add(range.begin);
    add(range.end);
  }
  void add(const Region& region) {
    add(region.images);
    add(region.channels);
    add(region.rows);
    add(region.cols);
  }
  void add(const Tile& tile) {
    add(tile.owned);
    add(tile.computed);
    add(tile.backward);
  }
  void add(const Buffer& buffer) {
    add(Index{buffer.map});
    add(buffer.region);
  }
  void add(const Message& message) {
    add(Index{message.from});
    add(Index{message.to});
    add(message.payload);
  }
  void add(const Payload& payload) {
    add(static_cast<Index>(payload.kind()));
    switch (payload.kind()) {
      case Payload::Kind::Cells:
        add(payload.cells());
        break;
      case Payload::Kind::Channels:
        add(payload.channels());
        break;
      case Payload::Kind::ElementRun:
        add(payload.element_run());
        break;
      case Payload::Kind::ElementCount:
        add(payload.element_count().elements);
        add(payload.element_count().packed_bytes);
        break;
      case Payload::Kind::Images:
        add(payload.images());
        break;
      case Payload::Kind::LossShare:
        break;
    }
  }
  void add(const GroupGeometry& group) {
    add(Index{group.first});
    add(group.tiles);
    add(Index{group.recompute});
  }
  void add(const ParameterPlan& parameter) {
    add(Index{parameter.layer});
    add(static_cast<Index>(parameter.kind));
    add(Index{parameter.frozen});
    add(parameter.required);
    add(parameter.owned);
    add(parameter.messages);
  }
  void add(const ConvolutionKernels& kernels) {
    add(static_cast<Index>(kernels.forward));
    add(static_cast<Index>(kernels.backward_data));
    add(static_cast<Index>(kernels.backward_weights));
  }
  void add(const GradientReduction& gradient_reduction) {
    add(gradient_reduction.bucket_bytes);
    const Compression& compression = gradient_reduction.compression;
    add(static_cast<Index>(compression.kind));
    if (compression.by_runs()) {
      add(std::string_view(to_text(compression)));
    }
    if (gradient_reduction.optimizer != OptimizerStates::Sharded) {
      add(std::string_view(name_of(gradient_reduction.optimizer)));
    }
  }
  void add(const TilePart& part) {
    add(part.region);
    add(Index{part.awaits});
  }
  void add(const DeferredWeights& deferred) {
    add(Index{deferred.next});
    add(Index{deferred.half});
  }
  void add(const LayerPlan& layer) {
    add(layer.forward_parts);
    add(Index{layer.prepares_filters});
    add(layer.weight_parts.at_once);
    add(layer.weight_parts.deferred);
    add(Index{layer.fused_pool});
    add(Index{layer.argmax_pool});
    add(Index{layer.recompute.runs});
    add(Index{layer.recompute.output});
    add(Index{layer.restores_output});
  }
  void add(const Transfer& transfer) {
    add(static_cast<Index>(transfer.kind));
    add(Index{transfer.subject});
    add(Index{transfer.group});
    add(Index{transfer.part});
    add(transfer.messages);
    add(Index{transfer.list_of.number()});
  }
  void add(const Action& action) {
    add(static_cast<Index>(action.kind));
    add(static_cast<Index>(action.passes));
    add(static_cast<Index>(action.phase));
    add(Index{action.layer});
    add(Index{action.part});
    add(Index{action.bucket});
    add(Index{action.transfer.number()});
  }
  template <class Item>
  void add(const std::vector<Item>& items) {
    add(static_cast<Index>(items.size()));
    for (const Item& item : items) {
      add(item);
    }
  }
  template <class Key, class Item>
  void add(const IndexedVector<Key, Item>& items) {
    add(items.elements());
  }
};

}  // namespace

std::string fingerprint(const Plan& plan) {
  PlanFingerprint print;
  print.add(plan.batch);
  print.add(Index{plan.ranks});
  print.add(Index{plan.reader.single_rank().value_or(-1)});
  print.add(plan.image);
  print.add(plan.groups);
  print.add(plan.buffers);
  print.add(plan.parameters);
  print.add(plan.kernels);
  print.add(plan.gradient_reduction);
  if (plan.replicas.count > 1) {
    print.add(Index{plan.replicas.count});
    print.add(std::string_view(to_text(plan.replicas.sync)));
    print.add(std::string_view(to_text(plan.sync_compression)));
  }
  print.add(plan.targets);
  print.add(plan.layers);
  print.add(plan.deferred);
  print.add(plan.transfers);
  print.add(plan.schedule.actions);
  return print.text();
}

}  // namespace tessera::partitioner
