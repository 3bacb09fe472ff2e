#include "partitioner/partition/partition.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <set>
#include <string_view>

#include "partitioner/base/errors.h"
#include "partitioner/base/fingerprint.h"

namespace tessera::partitioner {

namespace {

constexpr Index kMostParts = 1'000'000;  // of a cut, and tiles of a group

// A fingerprint of everything that geometry or the set of parameters depends on.
class NetworkFingerprint : public Fingerprint {
 public:
  using Fingerprint::add;
  void add(const MapShape& shape) {
    add(shape.channels);
    add(shape.rows);
    add(shape.cols);
  }

  // Fingerprints of square filters are those of one number.
  void add(const PerAxis& numbers) {
    add(numbers.rows);
    if (!numbers.is_square()) {
      add(std::string_view("x"));
      add(numbers.cols);
    }
  }

  void operator()(const Convolution& layer) {
    add(layer.filters);
    add(layer.size);
    add(layer.stride);
    add(layer.padding);
    add(layer.groups);
    add(static_cast<Index>(layer.batch_normalize));
    add(std::string_view(activation_name(layer.activation)));
    if (layer.dilation != 1) {
      add(std::string_view("dilation"));
      add(layer.dilation);
    }
    if (layer.more_padding != 0) {
      add(std::string_view("padding_end"));
      add(layer.more_padding);
    }
  }
  void operator()(const Deconvolution& layer) {
    add(layer.filters);
    add(layer.size);
    add(layer.stride);
    add(layer.padding);
    add(layer.more_padding);
    add(static_cast<Index>(layer.batch_normalize));
    add(std::string_view(activation_name(layer.activation)));
  }
  void operator()(const MaxPool& layer) {
    add(layer.size);
    add(layer.stride);
    add(layer.padding);
  }
  void operator()(const ChannelPool& layer) { add(layer.outputs); }
  void operator()(const Connected& layer) {
    add(layer.outputs);
    add(static_cast<Index>(layer.batch_normalize));
    add(std::string_view(activation_name(layer.activation)));
  }
  void operator()(const Local& layer) {
    add(layer.filters);
    add(layer.size);
    add(layer.stride);
    add(layer.padding);
    add(std::string_view(activation_name(layer.activation)));
  }
  void operator()(const Softmax& layer) {
    add(layer.groups);
    add(static_cast<Index>(layer.spatial));
  }
  void operator()(const Shortcut& layer) {
    add(std::string_view(activation_name(layer.activation)));
  }
  void operator()(const Sam& layer) { add(std::string_view(activation_name(layer.activation))); }
  void operator()(const ScaleChannels& layer) {
    add(std::string_view(activation_name(layer.activation)));
    add(static_cast<Index>(layer.by_place));
  }
  void operator()(const Route& layer) {
    add(layer.groups);
    add(layer.group);
  }
  void operator()(const Upsample& layer) {
    add(layer.stride);
    if (layer.bilinear) {
      add(std::string_view("bilinear"));
    }
  }
  void operator()(const Reorg& layer) {
    add(layer.stride);
    add(static_cast<Index>(layer.reverse));
  }
  void operator()(const SpaceToDepth& layer) { add(layer.stride); }
  void operator()(const ChannelShuffle& layer) { add(layer.groups); }
  void operator()(const YoloHead& /*layer*/) {}
  void operator()(const RegionHead& /*layer*/) {}
  void operator()(const GridHead& /*layer*/) {}
  void operator()(const YoloxHead& /*layer*/) {}
  void operator()(const AvgPool& /*layer*/) {}
  void operator()(const Dropout& /*layer*/) {}
  void operator()(const Cost& /*layer*/) {}
  void operator()(const Crop& /*layer*/) {}
};

// One partition on its way through validate(): where it came from, and how a fault in it is
// reported.
class Validation {
 public:
  Validation(const Partition& partition, const Network& network, Index batch, std::string where)
      : partition_(partition), network_(network), batch_(batch), where_(std::move(where)) {}

  void run() {
    if (partition_.network != fingerprint(network_)) {
      fail(fmt::format(
          "the partition is for another network (fingerprint \"{}\", this one has \"{}\"): make a "
          "new one with `tessera plan --save`, or use the model file that it was made for",
          partition_.network,
          fingerprint(network_)));
    }
    if (partition_.ranks < 1 || partition_.ranks > kMostParts) {
      fail(fmt::format("{} ranks, expected 1 to {}", partition_.ranks, kMostParts));
    }
    if (!partition_.reader.is_among(partition_.ranks)) {
      fail(fmt::format("the reader is rank {}, expected \"every\" or a rank from 0 to {}",
                       partition_.reader.first_rank(),
                       partition_.ranks - 1));
    }
    check_cover();
    for (std::size_t i = 0; i < partition_.groups.size(); ++i) {
      check_group(i);
    }
    check_kernels();
    check_replicas();
    check_optimizer();
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw InputError(where_, 0, message); }

  [[noreturn]] void fail(std::size_t group, const std::string& message) const {
    const Group& failing = partition_.groups[group];
    fail(
        fmt::format("group {} (layers {} to {}): {}", group, failing.first, failing.last, message));
  }

  void check_kernels() const {
    if (partition_.kernels.size() > network_.layers.size()) {
      fail(fmt::format("kernels for layer {}: the network has {} layers",
                       partition_.kernels.size() - 1,
                       network_.layers.size()));
    }
    for (std::size_t layer = 0; layer < partition_.kernels.size(); ++layer) {
      const ConvolutionKernels& chosen = partition_.kernels[layer];
      for (const ConvolutionKernel kernel :
           {chosen.forward, chosen.backward_data, chosen.backward_weights}) {
        const auto why = obstacle(kernel, network_, static_cast<int>(layer));
        if (chosen != ConvolutionKernels{} && why) {
          fail(
              fmt::format("layer {} cannot be computed by the kernel {}: it {}; winograd2 and "
                          "winograd4 are for 3x3 convolutions of stride 1 with equal padding, "
                          "without groups",
                          layer,
                          name_of(kernel),
                          *why));
        }
      }
    }
  }

  void check_optimizer() const {
    const GradientReduction& reduction = partition_.gradient_reduction;
    if (reduction.optimizer == OptimizerStates::Sharded) {
      return;
    }
    if (reduction.compression != Compression::Exact) {
      fail(fmt::format("a replicated optimizer needs the exact gradients, not {} ones",
                       to_text(reduction.compression)));
    }
    if (partition_.replicas.independent()) {
      fail(
          fmt::format("a replicated optimizer needs the gradients of all ranks; replicas "
                      "synchronised by {} have their own",
                      to_text(partition_.replicas.sync)));
    }
  }

  // They are cut alike where each has parameters of its own.
  void check_replicas() const {
    const Replicas& replicas = partition_.replicas;
    if (replicas.count < 1 || partition_.ranks % replicas.count != 0) {
      fail(fmt::format("{} ranks cannot be divided into {} replicas of equal size",
                       partition_.ranks,
                       replicas.count));
    }
    if (!replicas.independent()) {
      return;
    }
    if (network_.max_gradient_norm > 0) {
      fail(
          fmt::format("max_gradient_norm={} in [net] clips the gradient of all images of a step; "
                      "replicas synchronised by {} have their own: remove it, or leave out --sync",
                      network_.max_gradient_norm,
                      to_text(replicas.sync)));
    }
    if (batch_ % replicas.count != 0) {
      fail(fmt::format("{} images per pass cannot be divided among {} replicas: give a multiple",
                       batch_,
                       replicas.count));
    }
    if (replicas.sync.mode == SyncMode::Gossip &&
        partition_.gradient_reduction.compression != Compression::Exact) {
      fail(fmt::format("replicas that gossip send whole parameters: {} is not for them",
                       to_text(partition_.gradient_reduction.compression)));
    }
    if (const auto reader = partition_.reader.single_rank()) {
      fail(fmt::format("rank {} reads pictures for all: replicas synchronised by {} read their own",
                       *reader,
                       to_text(replicas.sync)));
    }
    for (std::size_t i = 0; i < partition_.groups.size(); ++i) {
      const Group& group = partition_.groups[i];
      for (const Cut& cut : group.bands.empty() ? std::vector<Cut>{group.images} : group.bands) {
        if (cut.parts % replicas.count != 0) {
          fail_unlike(i);
        }
      }
    }
    const Partition alike = replicated(one_replica(partition_), replicas, batch_ / replicas.count);
    for (std::size_t i = 0; i < partition_.groups.size(); ++i) {
      const Group& group = partition_.groups[i];
      const Group& expected = alike.groups[i];
      bool same = group.ranks == expected.ranks && group.bands.size() == expected.bands.size() &&
                  cut_boundaries(group.images, batch_) == cut_boundaries(expected.images, batch_);
      for (std::size_t band = 0; same && band < group.bands.size(); ++band) {
        same = cut_boundaries(group.bands[band], batch_) ==
               cut_boundaries(expected.bands[band], batch_);
      }
      if (!same) {
        fail_unlike(i);
      }
    }
  }

  [[noreturn]] void fail_unlike(std::size_t group) const {
    fail(group,
         fmt::format("is not that of {} replicas that are cut alike, each with its share of the "
                     "images on ranks of its own",
                     partition_.replicas.count));
  }

  void check_cover() const {
    int next = 0;
    for (std::size_t i = 0; i < partition_.groups.size(); ++i) {
      const Group& group = partition_.groups[i];
      if (group.first != next) {
        fail(i,
             fmt::format(
                 "starts at layer {}, expected {}: groups follow each other without gap or overlap",
                 group.first,
                 next));
      }
      if (group.last < group.first) {
        fail(i, "ends before it starts: give layers = [first, last], both included");
      }
      if (group.last >= network_.size()) {
        fail(i,
             fmt::format("the network's last layer is {}: end the group there",
                         network_.size() - 1));
      }
      next = group.last + 1;
    }
    if (next != network_.size()) {
      fail(fmt::format(
          "{} groups hold layers up to {}, the network's last is {}: add a group for the rest",
          partition_.groups.size(),
          next - 1,
          network_.size() - 1));
    }
  }

  void check_group(std::size_t index) const {
    const Group& group = partition_.groups[index];
    const MapShape& map = network_.shape(group.last);
    check_cut(index, "images", group.images, batch_);
    check_cut(index, "channels", group.channels, map.channels);
    check_cut(index, "rows", group.rows, map.rows);
    check_cut(index, "cols", group.cols, map.cols);
    check_bands(index);
    check_ranks(index);
    int previous = group.first - 1;
    for (const int layer : group.reduce_to_owner) {
      if (layer < group.first || layer > group.last) {
        fail(index, fmt::format("collapse names layer {}, which is not in the group", layer));
      }
      if (layer <= previous) {
        fail(index,
             fmt::format("collapse names layer {} after {}: list each layer once, in rising order",
                         layer,
                         previous));
      }
      previous = layer;
    }
  }

  void check_cut(std::size_t index, const char* name, const Cut& cut, Index extent) const {
    if (cut.parts < 1 || cut.parts > kMostParts) {
      fail(index,
           fmt::format("{} is cut into {} parts, expected 1 to {}", name, cut.parts, kMostParts));
    }
    if (cut.boundaries.empty()) {
      return;
    }
    const std::vector<Index>& at = cut.boundaries;
    if (static_cast<Index>(at.size()) != cut.parts + 1) {
      fail(index,
           fmt::format("{} has {} boundaries for {} parts, expected {}",
                       name,
                       at.size(),
                       cut.parts,
                       cut.parts + 1));
    }
    if (at.front() != 0 || at.back() != extent) {
      fail(index,
           fmt::format("{} is cut from {} to {}, expected 0 to {}, the {}",
                       name,
                       at.front(),
                       at.back(),
                       extent,
                       std::string_view(name).starts_with("images")
                           ? "images of a pass"
                           : "whole of the last layer's output"));
    }
    for (std::size_t i = 1; i < at.size(); ++i) {
      if (at[i] < at[i - 1]) {
        fail(index,
             fmt::format(
                 "{} has the boundary {} after {}: boundaries never fall", name, at[i], at[i - 1]));
      }
    }
  }

  void check_bands(std::size_t index) const {
    const Group& group = partition_.groups[index];
    if (group.bands.empty()) {
      return;
    }
    if (group.images != Cut{}) {
      fail(index,
           "has both images and bands: bands say how images are cut in each part of the rows");
    }
    if (static_cast<Index>(group.bands.size()) != group.rows.parts) {
      fail(index,
           fmt::format("{} bands for {} parts of the rows: give one for each",
                       group.bands.size(),
                       group.rows.parts));
    }
    for (const Cut& band : group.bands) {
      check_cut(index, "images of a band", band, batch_);
    }
  }

  void check_ranks(std::size_t index) const {
    const Group& group = partition_.groups[index];
    Index tiles = 1;
    for (const Index parts : {group.image_parts(), group.channels.parts, group.cols.parts}) {
      tiles *= parts;  // at most kMostParts squared each, so the product cannot overflow here
      if (tiles > kMostParts) {
        fail(index, fmt::format("more than {} tiles: cut it into fewer parts", kMostParts));
      }
    }
    if (tiles != static_cast<Index>(group.ranks.size())) {
      fail(index,
           fmt::format(
               "{} tiles and {} ranks: list one rank for each tile", tiles, group.ranks.size()));
    }
    std::vector<int> sorted = group.ranks;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] < 0 || sorted[i] >= partition_.ranks) {
        fail(index,
             fmt::format("a tile on rank {}, expected a rank from 0 to {}",
                         sorted[i],
                         partition_.ranks - 1));
      }
      if (i > 0 && sorted[i] == sorted[i - 1]) {
        fail(
            index,
            fmt::format("two tiles on rank {}: a rank has at most one tile of a group", sorted[i]));
      }
    }
  }

  const Partition& partition_;
  const Network& network_;
  Index batch_;
  std::string where_;
};

}  // namespace

std::vector<Index> cut_boundaries(const Cut& cut, Index extent) {
  if (!cut.boundaries.empty()) {
    return cut.boundaries;
  }
  std::vector<Index> boundaries;
  boundaries.reserve(static_cast<std::size_t>(cut.parts) + 1);
  for (Index i = 0; i <= cut.parts; ++i) {
    boundaries.push_back(extent * i / cut.parts);
  }
  return boundaries;
}

std::string fingerprint(const Network& network) {
  NetworkFingerprint print;
  print.add(network.image);
  print.add(static_cast<Index>(network.size()));
  for (const LayerSpec& layer : network.layers) {
    print.add(std::string_view(kind_name(layer.operation)));
    std::visit(print, layer.operation);
    print.add(static_cast<Index>(layer.inputs.size()));
    for (const int input : layer.inputs) {
      print.add(static_cast<Index>(input));
    }
    print.add(layer.output);
  }
  return print.text();
}

Partition single_tile(const Network& network) {
  Partition partition;
  partition.network = fingerprint(network);
  if (network.size() > 0) {
    Group group;
    group.last = network.size() - 1;
    group.ranks = {0};
    partition.groups.push_back(group);
  }
  return partition;
}

Partition on_ranks(Partition partition, const std::vector<int>& devices, int ranks) {
  expects(static_cast<std::size_t>(partition.ranks) == devices.size(), "a device for each rank");
  const auto place = [&](int rank) { return devices[static_cast<std::size_t>(rank)]; };
  for (Group& group : partition.groups) {
    std::transform(group.ranks.begin(), group.ranks.end(), group.ranks.begin(), place);
  }
  if (const auto reader = partition.reader.single_rank()) {
    partition.reader = Reader::rank(place(*reader));
  }
  partition.ranks = ranks;
  return partition;
}

Partition of_ranks(Partition partition, const std::vector<int>& devices) {
  const auto place = [&](int rank) {
    const auto found = std::find(devices.begin(), devices.end(), rank);
    expects(found != devices.end(), "a rank that is needed is listed");
    return static_cast<int>(found - devices.begin());
  };
  for (Group& group : partition.groups) {
    std::transform(group.ranks.begin(), group.ranks.end(), group.ranks.begin(), place);
  }
  if (const auto reader = partition.reader.single_rank()) {
    partition.reader = Reader::rank(place(*reader));
  }
  partition.ranks = static_cast<int>(devices.size());
  return partition;
}

std::vector<int> busy_ranks(const Partition& partition) {
  std::set<int> busy;
  for (const Group& group : partition.groups) {
    busy.insert(group.ranks.begin(), group.ranks.end());
  }
  return {busy.begin(), busy.end()};
}

void validate(const Partition& partition,
              const Network& network,
              Index batch,
              const std::string& where) {
  expects(batch >= 1, "a pass has at least one image");
  Validation(partition, network, batch, where).run();
}

}  // namespace tessera::partitioner
