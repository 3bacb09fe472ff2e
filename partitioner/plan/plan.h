// All that follows from a decision: what each rank owns, computes and requires of every map, every
// message, and the order of a step. A pure integer function of network, partition and batch: each
// rank derives the same plan, and only the decision ever travels.
//
// Owned: each cell of a map by exactly one rank. Computed: what the rank's tile works out itself;
// inside a group that is more than it owns. Required: what a layer reads. Maps are numbered as in
// partitioner/network/network.h; kImage is the input.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "partitioner/network/network.h"
#include "partitioner/partition/partition.h"
#include "partitioner/plan/group_geometry.h"
#include "partitioner/plan/layer_plan.h"
#include "partitioner/plan/message.h"
#include "partitioner/plan/schedule.h"

namespace tessera::partitioner {

// Memory for a map, or for the part of it that a group reads. Reaches outside the map where a
// border belongs to it: those cells are always 0.
struct Buffer {
  int map = kImage;
  Region region;
};

using BufferIndex = StrongIndex<struct BufferTag>;  // in Plan::buffers of a rank
inline constexpr BufferIndex kNoBuffer;

enum class ParameterKind { Weight, Bias, Scale, Mean, Variance };
inline constexpr ParameterKind kParameterKinds[] = {ParameterKind::Weight,
                                                    ParameterKind::Bias,
                                                    ParameterKind::Scale,
                                                    ParameterKind::Mean,
                                                    ParameterKind::Variance};

[[nodiscard]] constexpr bool is_learnt(ParameterKind kind) {
  return kind != ParameterKind::Mean && kind != ParameterKind::Variance;
}

// A parameter tensor as a map of its own: one row of `shape.channels * shape.row` cells, in channel
// order.
struct ParameterPlan {
  int layer = 0;
  ParameterKind kind = ParameterKind::Weight;
  ParameterShape shape;
  bool frozen = false;          // its layer is
  LearningRules learning = {};  // of its layer
  bool held = false;            // learnt, but by the rules of its layer it never changes
  int copies = 1;               // one on each replica's ranks, where replicas are independent
  std::vector<Range> required;  // per rank: output channels that it computes with
  std::vector<std::vector<Range>>
      owned;  // per rank: disjoint runs of elements, together all of a copy
  std::vector<std::vector<Range>>
      updated;                    // per rank: disjoint runs that it updates, with what it owns
  std::vector<Message> messages;  // runs of elements, from owners to ranks that require them
};

// Whether training changes it by gradients, or by the statistics of batches.
[[nodiscard]] inline bool is_learnt(const ParameterPlan& parameter) {
  return is_learnt(parameter.kind) && !parameter.frozen;
}
[[nodiscard]] inline bool is_running_statistic(const ParameterPlan& parameter) {
  return !is_learnt(parameter.kind) && !parameter.frozen;
}
// Whether the update of a step changes a learnt parameter.
[[nodiscard]] inline bool is_updated(const ParameterPlan& parameter, Index step) {
  return !parameter.held && step > parameter.learning.steps_held;
}

// Learnt parameters of consecutive layers, whose gradients and values travel together.
struct BucketPlan {
  GradientBucket layers;
  std::vector<int> parameters;  // in Plan::parameters
  // Gradients of shift and scale of normalised layers travel with `all_gradients` only: see
  // Transfer::normalized.
  TransferIndex values = kNoTransfer;
  TransferIndex gradients = kNoTransfer;
  TransferIndex all_gradients = kNoTransfer;
};

struct Plan {
  Index batch = 1;  // images in one pass
  int ranks = 1;
  Replicas replicas;
  Reader reader;
  std::vector<GroupGeometry> groups;
  std::vector<int> group_of;                                // by layer
  std::vector<Tile> image;                                  // [rank]
  std::vector<IndexedVector<BufferIndex, Buffer>> buffers;  // [rank]
  std::vector<IndexedVector<MapSlot, BufferIndex>>
      produced_in;  // [rank] -> buffer that the map's layer writes, or kNoBuffer
  std::vector<std::vector<std::vector<BufferIndex>>>
      read_from;                            // [rank][layer][input] -> buffer, or kNoBuffer
  std::vector<ParameterPlan> parameters;    // by layer, then kind
  std::vector<ConvolutionKernels> kernels;  // by layer
  GradientReduction gradient_reduction;     // among ranks of one copy of the parameters
  Compression sync_compression;             // of what independent replicas send each other
  std::vector<Message> targets;             // labels of images, from the reader to the other ranks
  std::vector<std::vector<LayerPlan>> layers;  // [rank][layer]
  std::vector<DeferredWeights> deferred;       // by layer
  std::vector<BucketPlan> buckets;             // in the order of the backward pass
  // All that any schedule of the plan uses: see transfers.h.
  IndexedVector<TransferIndex, Transfer> transfers;
  Schedule schedule;  // of a training step with batch statistics and a loss

  [[nodiscard]] const std::vector<Tile>& tiles_of(int map) const {  // [rank]
    return map == kImage ? image : groups[static_cast<std::size_t>(group(map))].tiles_of(map);
  }
  [[nodiscard]] const Tile& tile(int map, int rank) const {
    return tiles_of(map)[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] int group(int map) const {  // the image has a group of its own, -1
    return map == kImage ? -1 : group_of[static_cast<std::size_t>(map)];
  }
  [[nodiscard]] bool recomputes(int group) const {
    return group >= 0 && groups[static_cast<std::size_t>(group)].recompute;
  }
  [[nodiscard]] const ConvolutionKernels& kernels_of(int layer) const {
    return kernels[static_cast<std::size_t>(layer)];
  }
  // Copies of the parameters: each independent replica has one.
  [[nodiscard]] int copies() const { return replicas.independent() ? replicas.count : 1; }
  // How many ranks share a copy, and the number of the copy that a rank has a share of.
  [[nodiscard]] int ranks_of_copy() const { return ranks / copies(); }
  [[nodiscard]] int copy_of(int rank) const { return rank / ranks_of_copy(); }
  // The compression of gradients and values among all ranks, or of what independent replicas send
  // each other.
  [[nodiscard]] const Compression& compression_of_decision() const {
    return replicas.independent() ? sync_compression : gradient_reduction.compression;
  }
  // Images that batch statistics are taken of.
  [[nodiscard]] Index statistics_batch() const { return batch / copies(); }
  // The buffer of the rank that the map's layer writes, or kNoBuffer.
  [[nodiscard]] BufferIndex producer(int rank, int map) const {
    return produced_in[static_cast<std::size_t>(rank)][map_slot(map)];
  }
  [[nodiscard]] const Buffer& buffer(int rank, BufferIndex buffer) const {
    return buffers[static_cast<std::size_t>(rank)][buffer];
  }
};

// What `rank` begins a pass with of the image: what it requires where every rank reads its own
// part, else the whole image on the reader and nothing on the others.
[[nodiscard]] Region image_region(const Network& network, const Plan& plan, int rank);

// The buffer that this part of the image is put into, or kNoBuffer.
[[nodiscard]] BufferIndex image_buffer(const Plan& plan, int rank);

// What each rank owns of a map.
[[nodiscard]] std::vector<Region> owned_regions(const Plan& plan, int map);

// The layers of each group.
[[nodiscard]] std::vector<LayerRun> groups_of(const Plan& plan);

// Whether the parameter is the shift or scale of a normalised layer, or one of its running
// statistics.
[[nodiscard]] bool is_normalized(const Network& network, const ParameterPlan& parameter);

// Requires a partition that validate() accepts.
[[nodiscard]] Plan make_plan(const Network& network, const Partition& partition, Index batch);

// What breaks the invariants of the geometry, or else of the schedule, a sentence each; empty for a
// sound plan.
[[nodiscard]] std::vector<std::string> check(const Network& network, const Plan& plan);

// Multiply-adds of one forward pass on one rank, and how many of them another rank computes too.
struct Work {
  Index multiply_adds = 0;
  Index redundant = 0;
};
[[nodiscard]] Work forward_work(const Network& network, const Plan& plan, int layer, int rank);

}  // namespace tessera::partitioner
