// A convolutional network as a directed acyclic graph of layers, with shapes and with the one rule
// that all geometry rests on: to compute this region of its output, which region of each input does
// a layer require?
//
// A map is what a layer puts out. Map i belongs to layer i, counted from 0 as the sections of a
// model file after [net]; map kImage (-1) is the network's input. Shapes are those of one image:
// channels, rows, columns.

#pragma once

#include <string>
#include <variant>
#include <vector>

#include "partitioner/base/region.h"
#include "partitioner/base/strong_index.h"
#include "partitioner/network/heads.h"

namespace tessera::partitioner {

inline constexpr int kImage = -1;

// Where a map stands in arrays over maps: the image first. Not where its layer stands in arrays
// over layers.
using MapSlot = StrongIndex<struct MapTag>;
[[nodiscard]] constexpr MapSlot map_slot(int map) {
  return MapSlot(map + 1);
}

struct MapShape {
  Index channels = 0;
  Index rows = 0;
  Index cols = 0;

  [[nodiscard]] constexpr Index volume() const { return channels * rows * cols; }
  friend constexpr bool operator==(const MapShape&, const MapShape&) = default;
};

// A number for rows and one for columns.
struct PerAxis {
  Index rows = 0;
  Index cols = 0;

  constexpr PerAxis(Index both) : rows(both), cols(both) {}  // NOLINT(google-explicit-constructor)
  constexpr PerAxis(Index of_rows, Index of_cols) : rows(of_rows), cols(of_cols) {}
  [[nodiscard]] constexpr bool is_square() const { return rows == cols; }
  [[nodiscard]] constexpr Index product() const { return rows * cols; }
  friend constexpr bool operator==(const PerAxis&, const PerAxis&) = default;
};

// Where a cell of a map made `stride` times as large lies between the cells of the map, along one
// axis: at `first`, and by `part` of 2 * stride on the way to the next one.
struct BetweenCells {
  Index first = 0;
  Index part = 0;
};
[[nodiscard]] constexpr BetweenCells between_cells(Index cell, Index stride, Index cells) {
  const Index place = 2 * cell + 1 - stride;  // in units of 1 / (2 * stride)
  const Index first = place < 0 ? 0 : place / (2 * stride);
  const bool inside = place >= 0 && first + 1 < cells;
  return {first, inside ? place % (2 * stride) : 0};
}

// Windows along one axis.
struct WindowAxis {
  Index size = 1;
  Index stride = 1;
  Index padding = 0;   // cells of border before the first
  Index dilation = 1;  // from one tap to the next

  // Cells from a window's first tap to its last, both included.
  [[nodiscard]] constexpr Index extent() const { return (size - 1) * dilation + 1; }
};

enum class Activation {
  Linear,
  Relu,
  Leaky,
  Relu6,
  Elu,
  Logistic,
  Tanh,
  Swish,
  Mish,
  Ramp,
  HardMish,
  Gelu,
  HardSigmoid,
  HardSwish
};

// out[k] = activation(normalise(sum over c, fh, fw of weight[k][c][fh][fw] * in[c][row * stride +
// fh * dilation - padding][...]) + bias[k])
struct Convolution {
  Index filters = 1;    // output channels, K
  PerAxis size = 1;     // of a filter: FH x FW
  PerAxis stride = 1;   // from one window to the next
  PerAxis padding = 0;  // cells of border above, and on the left
  Index groups = 1;     // filter k sees the input channels of its group only
  bool batch_normalize = false;
  Activation activation = Activation::Logistic;
  Index dilation = 1;        // from one tap of a filter to the next
  PerAxis more_padding = 0;  // below and on the right than above and on the left; may be negative

  [[nodiscard]] WindowAxis rows() const { return {size.rows, stride.rows, padding.rows, dilation}; }
  [[nodiscard]] WindowAxis cols() const { return {size.cols, stride.cols, padding.cols, dilation}; }
  // Cells of border below, and on the right.
  [[nodiscard]] PerAxis padding_end() const {
    return {padding.rows + more_padding.rows, padding.cols + more_padding.cols};
  }
  friend bool operator==(const Convolution&, const Convolution&) = default;
};

// A transposed convolution: out[k] = activation(normalise(sum over c, fh, fw and the cells i of the
// input of weight[k][c][fh][fw] * in[c][i][...]) + bias[k]) in row = i * stride + fh - padding, and
// likewise by columns.
struct Deconvolution {
  Index filters = 1;    // output channels, K
  PerAxis size = 1;     // of a filter: FH x FW
  PerAxis stride = 1;   // of the output from one cell of the input to the next
  PerAxis padding = 0;  // cells of the output that are left out above, and on the left
  bool batch_normalize = false;
  Activation activation = Activation::Logistic;
  PerAxis more_padding = 0;  // below and on the right than above and on the left; may be negative

  [[nodiscard]] WindowAxis rows() const { return {size.rows, stride.rows, padding.rows}; }
  [[nodiscard]] WindowAxis cols() const { return {size.cols, stride.cols, padding.cols}; }
  // Cells that are left out below, and on the right; negative: added, by less than a stride.
  [[nodiscard]] PerAxis padding_end() const {
    return {padding.rows + more_padding.rows, padding.cols + more_padding.cols};
  }
  friend bool operator==(const Deconvolution&, const Deconvolution&) = default;
};

// The window's first cell is row * stride - padding / 2 (truncated): `padding` is the total of both
// sides. What lies outside the map is ignored. The argmax of a window is kept in a byte, so windows
// have at most kLargestPool cells a side.
inline constexpr Index kLargestPool = 16;
struct MaxPool {
  Index size = 1;
  PerAxis stride = 1;
  PerAxis padding = 0;

  [[nodiscard]] WindowAxis rows() const { return {size, stride.rows, padding.rows / 2}; }
  [[nodiscard]] WindowAxis cols() const { return {size, stride.cols, padding.cols / 2}; }
  // Whether windows neither overlap nor leave cells out.
  [[nodiscard]] bool divides_map() const { return stride == size; }
  friend bool operator==(const MaxPool&, const MaxPool&) = default;
};

// Output channel k is the largest of the input channels k, k + outputs, k + 2 * outputs, ... of the
// same cell. Which of them it was is kept in a byte.
inline constexpr Index kMostPooledChannels = 256;
struct ChannelPool {
  Index outputs = 1;
  friend bool operator==(const ChannelPool&, const ChannelPool&) = default;
};

// The mean of each whole map: output (C, 1, 1).
struct AvgPool {
  friend bool operator==(const AvgPool&, const AvgPool&) = default;
};

// Reads its input as one vector in (C, H, W) order: output (K, 1, 1).
struct Connected {
  Index outputs = 1;
  bool batch_normalize = false;
  Activation activation = Activation::Logistic;
  friend bool operator==(const Connected&, const Connected&) = default;
};

// As a convolution, but each cell of the output has filters and biases of its own.
struct Local {
  Index filters = 1;
  Index size = 1;
  Index stride = 1;
  Index padding = 0;
  Activation activation = Activation::Logistic;

  [[nodiscard]] WindowAxis axis() const { return {size, stride, padding}; }
  friend bool operator==(const Local&, const Local&) = default;
};

struct Dropout {
  double probability = 0.5;
  friend bool operator==(const Dropout&, const Dropout&) = default;
};

// Over all values of an image, or over each of `groups` equal runs of them in (C, H, W) order; with
// `spatial`, over the channels of each cell. `scale` is the weight of its loss, where it is one:
// see losses.h.
struct Softmax {
  Index groups = 1;
  bool spatial = false;
  double temperature = 1;
  double scale = 1;
  friend bool operator==(const Softmax&, const Softmax&) = default;
};

// A loss of this weight, see losses.h. Its output is its input.
struct Cost {
  double scale = 1;
  friend bool operator==(const Cost&, const Cost&) = default;
};

// out = activation(alpha * inputs[0] + beta * (inputs[1] + inputs[2] + ...)), of the shape of
// inputs[0]. Several sources all have that shape. A single one may have another: the lesser number
// of channels; a source larger by k is sampled at every k-th cell, a smaller one is added at every
// k-th cell. Where it does not meet inputs[0], out = activation(inputs[0]).
struct Shortcut {
  Activation activation = Activation::Linear;
  double alpha = 1;
  double beta = 1;
  friend bool operator==(const Shortcut&, const Shortcut&) = default;
};

// out = activation(inputs[0] * inputs[1]), value by value.
struct Sam {
  Activation activation = Activation::Linear;
  friend bool operator==(const Sam&, const Sam&) = default;
};

// inputs[1], each channel multiplied by its value of inputs[0], a map of (C, 1, 1); with
// `by_place`, each row and column by that of inputs[0], a map of (1, H, W).
struct ScaleChannels {
  Activation activation = Activation::Linear;
  bool by_place = false;
  friend bool operator==(const ScaleChannels&, const ScaleChannels&) = default;
};

// Its inputs one behind the other along the channels; of each input only slice `group` of `groups`
// equal ones.
struct Route {
  Index groups = 1;
  Index group = 0;
  friend bool operator==(const Route&, const Route&) = default;
};

// Each cell repeated stride x stride times, multiplied by `scale`. Bilinear: between the cells
// around (row + 1/2) / stride - 1/2, and likewise by columns; at the border the nearest one
// (PyTorch's align_corners=False).
struct Upsample {
  Index stride = 2;
  double scale = 1;
  bool bilinear = false;
  friend bool operator==(const Upsample&, const Upsample&) = default;
};

// Darknet's flat re-index of (C, H, W) to (C * stride^2, H / stride, W / stride); not a local
// operation. `reverse` is the opposite direction, to (C / stride^2, H * stride, W * stride).
struct Reorg {
  Index stride = 2;
  bool reverse = false;
  friend bool operator==(const Reorg&, const Reorg&) = default;
};

// out[(dy * stride + dx) * C + c][row][col] = in[c][row * stride + dy][col * stride + dx], as ONNX
// defines it.
struct SpaceToDepth {
  Index stride = 2;
  friend bool operator==(const SpaceToDepth&, const SpaceToDepth&) = default;
};

// The channels lie as (groups, C / groups): output channel j * groups + g is channel
// g * (C / groups) + j of the input.
struct ChannelShuffle {
  Index groups = 2;
  friend bool operator==(const ChannelShuffle&, const ChannelShuffle&) = default;
};

// The data stage cuts this window out of each picture before the network sees it; as a layer it
// passes its input on and keeps its place in the numbering. Only layer 0 can be one.
struct Crop {
  bool flip = false;
  double angle = 0;
  double saturation = 1;
  double exposure = 1;
  bool noadjust = false;  // false: pixels scaled from 0..1 to -1..1
  friend bool operator==(const Crop&, const Crop&) = default;
};

using Operation = std::variant<Convolution,
                               Deconvolution,
                               MaxPool,
                               ChannelPool,
                               AvgPool,
                               Connected,
                               Local,
                               Dropout,
                               Softmax,
                               Cost,
                               Shortcut,
                               Sam,
                               ScaleChannels,
                               Route,
                               Upsample,
                               Reorg,
                               SpaceToDepth,
                               ChannelShuffle,
                               Crop,
                               YoloHead,
                               RegionHead,
                               GridHead,
                               YoloxHead>;

// How a layer learns, where it does.
struct LearningRules {
  double rate_factor = 1;  // of the learning rate
  Index steps_held = 0;    // the first steps of a training, in which nothing of it changes
  bool norm_only = false;  // only scale and shift of its normalisation change by gradients
  friend bool operator==(const LearningRules&, const LearningRules&) = default;
};

struct LayerSpec {
  Operation operation;
  std::vector<int> inputs;  // maps, each less than the layer's own index; kImage or a layer
  MapShape output;          // filled in by add_layer
  int line = 0;             // where the model file has it; 0 if it came from no file
  // Filled in by freeze(): a frozen layer computes as in inference and does not change.
  bool frozen = false;
  // Whether the backward pass comes to it: it learns, or a layer that it depends on does. Of a
  // network without frozen layers: always.
  bool has_backward = true;
  // The first steps of a training, in which it and all layers before it are frozen, too: see
  // frozen_layers.h.
  Index frozen_steps = 0;
  LearningRules learning = {};
};

// Layers that follow each other, both ends included.
struct LayerRun {
  int first = 0;
  int last = 0;
};

// Shapes and layers. What a model file says besides (training, augmentation) is a ModelFile's, see
// partitioner/cfg/model_file.h.
struct Network {
  MapShape image;
  std::vector<LayerSpec> layers;
  // Gradients of an update that are longer are scaled down to it, all together; 0: none are.
  double max_gradient_norm = 0;

  [[nodiscard]] int size() const { return static_cast<int>(layers.size()); }
  [[nodiscard]] const MapShape& shape(int map) const {
    return map == kImage ? image : layers[static_cast<std::size_t>(map)].output;
  }
  [[nodiscard]] const LayerSpec& layer(int index) const {
    return layers[static_cast<std::size_t>(index)];
  }
  // Whether the backward pass makes the gradient of a map; of the image only where it is asked for.
  [[nodiscard]] bool takes_gradient(int map) const {
    return map == kImage ? layers.empty() || !layers.front().frozen : layer(map).has_backward;
  }
};

// Appends a layer and derives its output shape. Throws std::invalid_argument with a message for the
// user (no place: the caller knows it) where shapes do not fit: a window wholly outside the map,
// channels that do not divide, ...
void add_layer(Network& network, Operation operation, std::vector<int> inputs, int line = 0);

// Freezes the layers up to `last`, it included, and no others; -1: none. They normalise by their
// running statistics, drop nothing out, and have no backward pass. Throws std::invalid_argument
// with a message for the user where there is no such layer, or where no later one learns.
void freeze(Network& network, int last);

// The last frozen layer, -1 where none is.
[[nodiscard]] int last_frozen(const Network& network);

// The region of map inputs[input] that `layer` requires to compute `output` of its own map. Empty
// where it requires nothing of that input. Convolutions reach outside the map (the border, always
// 0); everything else is clipped.
[[nodiscard]] Region required_input(const Network& network,
                                    int layer,
                                    std::size_t input,
                                    const Region& output);

// The whole map: `batch` images.
[[nodiscard]] Region whole_map(const Network& network, int map, Index batch);

// The name of the section that makes such a layer, "convolutional", "maxpool", ...
[[nodiscard]] const char* kind_name(const Operation& operation);

[[nodiscard]] const char* activation_name(Activation activation);

// Multiply-adds of a forward pass that computes `output` of `layer` (weights only, no pointwise
// work); of a transposed convolution those of its average cell for each.
[[nodiscard]] Index multiply_adds(const Network& network, int layer, const Region& output);

// A parameter tensor of a layer; sizes in elements. `row` elements belong to each output channel.
struct ParameterShape {
  Index channels = 0;  // K
  Index row = 0;       // weights: channels / groups * FH * FW; vectors: 1; of a Local layer, those
                       // of all cells, one behind the other
};

// What a layer has to learn, and the statistics it keeps. All are 0 x 0 for layers without
// parameters.
struct LayerParameters {
  ParameterShape weight;
  ParameterShape bias;   // with batch normalisation: its shift
  ParameterShape scale;  // batch normalisation only, as are the two below; not learnt, updated
  ParameterShape mean;
  ParameterShape variance;
};

[[nodiscard]] LayerParameters layer_parameters(const Network& network, int layer);

}  // namespace tessera::partitioner
