#include "partitioner/text/plan_words.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "partitioner/base/quantities.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

std::string cut_text(const Group& group) {
  return fmt::format("{}", fmt::join(cut_words(group), ", "));
}

}  // namespace

std::string shape_text(const MapShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.rows, shape.cols);
}

std::string layers_text(int first, int last) {
  return first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

std::string named_layers(int first, int last) {
  return fmt::format("layer{} {}", first == last ? "" : "s", layers_text(first, last));
}

std::vector<std::string> cut_words(const Group& group) {
  std::vector<std::string> cuts;
  if (group.images.parts > 1) {
    cuts.push_back(fmt::format("images in {}", group.images.parts));
  }
  if (!group.bands.empty()) {
    std::vector<Index> parts;
    for (const Cut& band : group.bands) {
      parts.push_back(band.parts);
    }
    cuts.push_back(fmt::format("bands of images in {}", fmt::join(parts, " and ")));
  }
  if (group.channels.parts > 1) {
    cuts.push_back(fmt::format("channels in {}", group.channels.parts));
  }
  if (!group.bands.empty() && group.cols.parts > 1) {
    cuts.push_back(fmt::format("columns in {}", group.cols.parts));
  }
  if (group.bands.empty() && group.rows.parts * group.cols.parts > 1) {
    cuts.push_back(fmt::format("{}x{} tiles", group.rows.parts, group.cols.parts));
  }
  if (cuts.empty()) {
    cuts.emplace_back("one tile");
  }
  return cuts;
}

std::vector<std::string> hand_overs(const Partition& partition) {
  std::vector<std::string> runs;
  const std::vector<Group>& groups = partition.groups;
  for (std::size_t i = 0; i < groups.size();) {
    std::size_t next = i + 1;
    while (next < groups.size() && cut_text(groups[next]) == cut_text(groups[i])) {
      ++next;
    }
    runs.push_back(fmt::format("{}{} as {}",
                               i == 0 ? "layers " : "",
                               layers_text(groups[i].first, groups[next - 1].last),
                               cut_text(groups[i])));
    i = next;
  }
  return runs;
}

std::vector<std::string> recomputed_words(const Partition& partition) {
  std::vector<std::string> words;
  for (const Group& group : partition.groups) {
    if (group.recompute) {
      const std::string layers = layers_text(group.first, group.last);
      words.push_back(words.empty() ? "layers " + layers : layers);
    }
  }
  return words;
}

std::vector<std::string> kind_words(const Network& network, const Group& group) {
  std::vector<std::pair<std::string, int>> runs;
  for (int layer = group.first; layer <= group.last; ++layer) {
    const std::string kind = kind_name(network.layer(layer).operation);
    if (runs.empty() || runs.back().first != kind) {
      runs.emplace_back(kind, 0);
    }
    ++runs.back().second;
  }
  std::vector<std::string> words;
  words.reserve(runs.size());
  for (const auto& [kind, count] : runs) {
    words.push_back(count == 1 ? kind : fmt::format("{} x{}", kind, count));
  }
  return words;
}

std::vector<std::string> kernel_words(const Network& network, const Plan& plan) {
  const auto name = [](const ConvolutionKernels& of) {
    return of == all_passes(of.forward)
               ? std::string(name_of(of.forward))
               : fmt::format("{} forward, {} backward data, {} backward weights",
                             name_of(of.forward),
                             name_of(of.backward_data),
                             name_of(of.backward_weights));
  };
  std::vector<std::pair<std::string, std::vector<std::string>>> layers_of;  // by kernels
  for (int layer = 0; layer < network.size(); ++layer) {
    if (!applies(ConvolutionKernel::Direct, network, layer)) {
      continue;
    }
    const std::string kernels = name(plan.kernels_of(layer));
    auto found = std::find_if(layers_of.begin(), layers_of.end(), [&](const auto& entry) {
      return entry.first == kernels;
    });
    if (found == layers_of.end()) {
      found = layers_of.insert(layers_of.end(), {kernels, {}});
    }
    found->second.push_back(std::to_string(layer));
  }
  if (layers_of.size() == 1) {
    return {layers_of[0].first + " for all convolutions"};
  }
  std::vector<std::string> words;
  words.reserve(layers_of.size());
  for (const auto& [kernels, layers] : layers_of) {
    words.push_back(fmt::format("{} for layers {}", kernels, fmt::join(layers, " ")));
  }
  return words;
}

namespace {

std::string tied_words(const Replicas& replicas) {
  const Index steps = replicas.sync.steps;
  const std::string every = steps == 1 ? "every step" : fmt::format("every {} steps", steps);
  switch (replicas.sync.mode) {
    case SyncMode::Local:
      return fmt::format("parameters of {} replicas averaged {}", replicas.count, every);
    case SyncMode::PostLocal:
      return fmt::format("gradients of {} replicas averaged every step, later parameters {}",
                         replicas.count,
                         every);
    case SyncMode::ParameterRank:
      return steps == 0
                 ? fmt::format("gradients of {} replicas averaged every step", replicas.count)
                 : fmt::format("{} replicas {} behind", replicas.count, counted(steps, "update"));
    case SyncMode::Gossip:
      return fmt::format("parameters of {} replicas averaged in random pairs", replicas.count);
    case SyncMode::EveryStep:
      break;
  }
  return "";
}

}  // namespace

std::vector<std::string> inexact_words(const Network& network,
                                       const Replicas& replicas,
                                       const Compression& compression,
                                       bool tile_statistics) {
  const bool normalizes =
      std::any_of(network.layers.begin(), network.layers.end(), takes_batch_statistics);
  const bool waits_for_each_update =
      replicas.sync.mode == SyncMode::ParameterRank && replicas.sync.steps == 0;
  std::vector<std::string> words;
  if (replicas.independent() && (normalizes || !waits_for_each_update)) {
    words.push_back(fmt::format("{} ({})", tied_words(replicas), to_text(replicas.sync)));
  }
  if (replicas.independent() && normalizes) {
    words.emplace_back("batch statistics of each replica");
  }
  if (compression != Compression::Exact) {
    words.push_back(
        fmt::format("gradients and parameters in compressed messages ({})", to_text(compression)));
  }
  if (tile_statistics && normalizes) {
    words.emplace_back("batch statistics of each tile");
  }
  return words;
}

}  // namespace tessera::partitioner
