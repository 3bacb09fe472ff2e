// The layers of a network as nodes of an ONNX graph, a function a kind.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/onnx/export.h"
#include "engine/onnx/export_graph.h"

namespace tessera::engine {

// Why ONNX cannot say what a layer computes, in words that follow its name; nothing where it can.
[[nodiscard]] std::optional<std::string> export_obstacle(const partitioner::Network& network,
                                                         int layer);

// Adds nodes layer by layer, in rising order.
class LayerExporter {
 public:
  // `image` is the value of the network's input, normalised. All must outlive it.
  LayerExporter(const partitioner::Network& network,
                const std::function<LayerWeights(int layer)>& weights,
                const ExportOptions& options,
                GraphBuilder& graph,
                GraphValue image);

  // Not of heads.
  void add(int layer);

  // The map of a layer that was added, as (N, C, H, W) or as (N, C * H * W).
  [[nodiscard]] GraphValue map(int layer);
  [[nodiscard]] GraphValue flat(int layer);

  // What the softmax in a layer that was not added takes the exponentials of, in the form of map()
  // or flat() that it works on.
  [[nodiscard]] GraphValue logits(int layer);

 private:
  struct Forms {
    std::optional<GraphValue> map;
    std::optional<GraphValue> flat;
  };

  // The value of a layer of that kind, in either form.
  GraphValue value_of(const partitioner::Convolution& convolution, int layer);
  GraphValue value_of(const partitioner::Deconvolution& deconvolution, int layer);
  GraphValue value_of(const partitioner::MaxPool& pool, int layer);
  GraphValue value_of(const partitioner::ChannelPool& pool, int layer);
  GraphValue value_of(const partitioner::AvgPool& pool, int layer);
  GraphValue value_of(const partitioner::Connected& connected, int layer);
  GraphValue value_of(const partitioner::Softmax& softmax, int layer);
  GraphValue value_of(const partitioner::Shortcut& shortcut, int layer);
  GraphValue value_of(const partitioner::Sam& sam, int layer);
  GraphValue value_of(const partitioner::ScaleChannels& scale, int layer);
  GraphValue value_of(const partitioner::Route& route, int layer);
  GraphValue value_of(const partitioner::Upsample& upsample, int layer);
  GraphValue value_of(const partitioner::Reorg& reorg, int layer);
  GraphValue value_of(const partitioner::SpaceToDepth& space_to_depth, int layer);
  GraphValue value_of(const partitioner::ChannelShuffle& shuffle, int layer);

  [[nodiscard]] int input_of(int layer, std::size_t number = 0) const;
  [[nodiscard]] std::vector<Index> map_shape(int layer) const;
  [[nodiscard]] Forms& forms(int layer) { return forms_[static_cast<std::size_t>(layer + 1)]; }

  // Pre-activations of a layer with weights, from what it multiplies them with. `product` makes the
  // node of a weight and a bias.
  template <class Product>
  GraphValue normalized(int layer,
                        bool batch_normalize,
                        std::vector<Index> weight_shape,
                        Product product);
  GraphValue shortcut_part(int layer, Index channels);

  const partitioner::Network& network_;
  const std::function<LayerWeights(int layer)>& weights_;
  const ExportOptions& options_;
  GraphBuilder& graph_;
  std::vector<Forms> forms_;  // the image's first
};

}  // namespace tessera::engine
