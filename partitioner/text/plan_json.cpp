#include <nlohmann/json.hpp>

#include "partitioner/cost/compute_model.h"
#include "partitioner/plan/owned_buckets.h"
#include "partitioner/plan/plan_totals.h"
#include "partitioner/plan/transfers.h"
#include "partitioner/text/plan_report.h"
#include "partitioner/text/plan_words.h"

namespace tessera::partitioner {

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson range_json(const Range& range) {
  return {range.begin, range.end};
}

OrderedJson region_json(const Region& region) {
  return {{"images", range_json(region.images)},
          {"channels", range_json(region.channels)},
          {"rows", range_json(region.rows)},
          {"cols", range_json(region.cols)}};
}

OrderedJson message_json(int map, const Message& message, Index scalar_bytes) {
  return {{"map", map},
          {"from", message.from},
          {"to", message.to},
          {"bytes", cell_bytes(message.payload.cells(), scalar_bytes)},
          {"region", region_json(message.payload.cells())}};
}

// Messages to oneself are none.
void append_messages(const Transfer& transfer, Index scalar_bytes, OrderedJson& list) {
  for (const Message& message : transfer.messages) {
    if (message.from != message.to) {
      list.push_back(message_json(transfer.subject, message, scalar_bytes));
    }
  }
}

OrderedJson layers_json(const Network& network) {
  OrderedJson layers = OrderedJson::array();
  for (int layer = 0; layer < network.size(); ++layer) {
    const LayerSpec& spec = network.layer(layer);
    OrderedJson each{{"index", layer},
                     {"kind", kind_name(spec.operation)},
                     {"output", {spec.output.channels, spec.output.rows, spec.output.cols}}};
    if (spec.frozen) {
      each["frozen"] = true;
    }
    layers.push_back(std::move(each));
  }
  return layers;
}

// The ranks on which the layer has such a pool.
OrderedJson ranks_with(const Plan& plan, int layer, int LayerPlan::*pool) {
  OrderedJson ranks = OrderedJson::array();
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (plan.layers[static_cast<std::size_t>(rank)][static_cast<std::size_t>(layer)].*pool !=
        kNoLayer) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

OrderedJson kernels_json(const Network& network, const Plan& plan) {
  OrderedJson kernels = OrderedJson::array();
  for (int layer = 0; layer < network.size(); ++layer) {
    if (applies(ConvolutionKernel::Direct, network, layer)) {
      const ConvolutionKernels& of = plan.kernels_of(layer);
      kernels.push_back({{"layer", layer},
                         {"forward", name_of(of.forward)},
                         {"backward_data", name_of(of.backward_data)},
                         {"backward_weights", name_of(of.backward_weights)},
                         {"fused_pool", ranks_with(plan, layer, &LayerPlan::fused_pool)},
                         {"argmax_pool", ranks_with(plan, layer, &LayerPlan::argmax_pool)}});
    }
  }
  return kernels;
}

// Multiply-adds of all passes of a step on one rank.
double step_multiply_adds(const Network& network,
                          const Plan& plan,
                          const LayerRun& layers,
                          int rank) {
  double sum = 0;
  for (int layer = layers.first; layer <= layers.last; ++layer) {
    const Tile& tile = plan.tile(layer, rank);
    sum += step_multiply_adds(network, layer, plan.kernels_of(layer), tile.computed, tile.backward);
  }
  return sum;
}

// The same on one device that does all.
double step_multiply_adds_of_one(const Network& network, const Plan& plan) {
  double sum = 0;
  for (int layer = 0; layer < network.size(); ++layer) {
    const Region whole = whole_map(network, layer, plan.batch);
    sum += step_multiply_adds(network, layer, plan.kernels_of(layer), whole, whole);
  }
  return sum;
}

// Weights, biases and scales of all layers, frozen ones, too; no running statistics.
Index parameter_count(const Plan& plan) {
  Index count = 0;
  for (const ParameterPlan& parameter : plan.parameters) {
    count += is_learnt(parameter.kind) ? parameter.shape.channels * parameter.shape.row : 0;
  }
  return count;
}

// What the ranks require of each map from outside that a group reads; the image is map -1.
OrderedJson reads_json(const GroupGeometry& group) {
  OrderedJson result = OrderedJson::array();
  for (const auto& [map, required] : group.required) {
    OrderedJson regions = OrderedJson::array();
    for (const Region& region : required) {
      regions.push_back(region_json(region));
    }
    result.push_back({{"map", map}, {"required", std::move(regions)}});
  }
  return result;
}

OrderedJson group_json(const Network& network,
                       const Plan& plan,
                       int group,
                       const LayerRun& layers,
                       const std::vector<Totals>& ranks,
                       Index scalar_bytes) {
  OrderedJson result = {{"layers", {layers.first, layers.last}},
                        {"recompute", plan.recomputes(group)},
                        {"reads", reads_json(plan.groups[static_cast<std::size_t>(group)])},
                        {"ranks", OrderedJson::array()}};
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const Work& work = ranks[static_cast<std::size_t>(rank)].work;
    result["ranks"].push_back(
        {{"rank", rank},
         {"owned", region_json(plan.tile(layers.last, rank).owned)},
         {"computed", region_json(plan.tile(layers.first, rank).computed)},
         {"multiply_adds", work.multiply_adds},
         {"redundant_multiply_adds", work.redundant},
         {"step_multiply_adds", step_multiply_adds(network, plan, layers, rank)}});
  }
  result["messages"] = OrderedJson::array();
  result["collapses"] = OrderedJson::array();
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.group != group) {
      continue;
    }
    if (transfer.kind == TransferKind::FeatureMap && transfer.is_sent) {
      append_messages(transfer, scalar_bytes, result["messages"]);
    } else if (transfer.kind == TransferKind::MapGradient) {
      append_messages(transfer, scalar_bytes, result["collapses"]);  // within the group, to owners
    }
  }
  return result;
}

OrderedJson gradient_reduction_json(const PlanTotals& totals) {
  OrderedJson result = OrderedJson::array();
  for (std::size_t rank = 0; rank < totals.gradient_reduction_in.size(); ++rank) {
    result.push_back({{"rank", rank},
                      {"sent", totals.gradient_reduction_out[rank].bytes},
                      {"received", totals.gradient_reduction_in[rank].bytes}});
  }
  return result;
}

// Messages as [from, to, bytes], the way they run; those to oneself are none.
OrderedJson transfer_json(const Plan& plan, const Transfer& transfer, Index scalar_bytes) {
  OrderedJson result = {{"kind", name_of(transfer.kind)}};
  if (const char* subject = subject_of(transfer.kind)) {
    result[subject] = transfer.subject;
  }
  if (transfer.group >= 0) {
    result["group"] = transfer.group;
    result["part"] = transfer.part;
  }
  if (transfer.kind == TransferKind::ParameterGradient) {
    result["normalized"] = transfer.normalized;
  }
  result["order"] = transfer.adds ? "by rank" : "as it arrives";
  result["priority"] = transfer.yields ? "yields" : "urgent";
  result["messages"] = OrderedJson::array();
  for_each_message(plan, transfer, [&](int from, int to, const Payload& payload) {
    if (from != to) {
      result["messages"].push_back(
          {from, to, message_bytes(plan, transfer, payload, scalar_bytes)});
    }
  });
  return result;
}

OrderedJson transfers_json(const Plan& plan, Index scalar_bytes) {
  OrderedJson result = OrderedJson::array();
  for (const Transfer& transfer : plan.transfers) {
    result.push_back(transfer_json(plan, transfer, scalar_bytes));
  }
  return result;
}

OrderedJson action_json(const Action& action, const char* section) {
  OrderedJson result = {{"section", section}, {"action", name_of(action.kind)}};
  if (action.kind != Action::Kind::Compute) {
    result["transfer"] = action.transfer.number();
  } else {
    result["phase"] = name_of(action.phase);
    if (action.layer != kNoLayer) {
      result["layer"] = action.layer;
      result["part"] = action.part;
    }
    if (action.bucket >= 0) {
      result["bucket"] = action.bucket;
    }
  }
  result["passes"] = name_of(action.passes);
  return result;
}

OrderedJson schedule_json(const Schedule& schedule) {
  OrderedJson result = OrderedJson::array();
  for (const ScheduleSection& of : kScheduleSections) {
    const Section& section = schedule.*of.actions;
    for (ActionIndex i = section.begin; i < section.end; ++i) {
      result.push_back(action_json(schedule.actions[i], of.name));
    }
  }
  return result;
}

OrderedJson memory_json(const std::vector<MemoryUse>& ranks) {
  OrderedJson result = OrderedJson::array();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const MemoryUse& use = ranks[rank];
    OrderedJson json = {{"rank", rank}};
    for (const MemoryKind& kind : kMemoryKinds) {
      json[kind.name] = use.*kind.bytes;
    }
    json["total"] = use.total();
    result.push_back(std::move(json));
  }
  return result;
}

OrderedJson replicas_json(const Plan& plan) {
  const Replicas& replicas = plan.replicas;
  OrderedJson result = {{"count", replicas.count},
                        {"ranks", plan.ranks / replicas.count},
                        {"sync", to_text(replicas.sync)},
                        {"compression", to_text(plan.compression_of_decision())}};
  if (replicas.independent()) {
    result["bytes"] = OrderedJson::array();
    for (int rank = 0; rank < plan.ranks; ++rank) {
      result["bytes"].push_back(all_owned(plan, rank).bytes);  // of a message with all it owns
    }
  }
  return result;
}

}  // namespace

std::string plan_json(const Network& network, const Plan& plan, const ReportOptions& options) {
  const Index scalar_bytes = options.memory.scalar_bytes;
  const PlanTotals totals = plan_totals(network, plan, scalar_bytes);
  OrderedJson result = {
      {"model", options.model},
      {"batch", plan.batch},
      {"ranks", plan.ranks},
      {"replicas", replicas_json(plan)},
      {"exact",
       inexact_words(
           network, plan.replicas, plan.compression_of_decision(), options.tile_statistics)
           .empty()},
      {"reader",
       plan.reader.is_every_rank() ? OrderedJson("every") : OrderedJson(plan.reader.first_rank())},
      {"multiply_adds", totals.sum.work.multiply_adds},
      {"redundant_multiply_adds", totals.sum.work.redundant},
      {"step_multiply_adds_of_one", step_multiply_adds_of_one(network, plan)},
      {"parameters", parameter_count(plan)},
      {"image", {network.image.channels, network.image.rows, network.image.cols}},
      {"layers", layers_json(network)},
      {"kernels", kernels_json(network, plan)},
      {"groups", OrderedJson::array()}};
  const std::vector<LayerRun> groups = groups_of(plan);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    result["groups"].push_back(group_json(network,
                                          plan,
                                          static_cast<int>(group),
                                          groups[group],
                                          totals.by_group[group],
                                          scalar_bytes));
  }
  result["gradient_sum"] = gradient_reduction_json(totals);
  result["transfers"] = transfers_json(plan, scalar_bytes);
  result["schedule"] = schedule_json(plan.schedule);
  result["memory"] = memory_json(planned_memory_of_ranks(network, plan, options));
  // A model's name may be any bytes.
  return result.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

}  // namespace tessera::partitioner
