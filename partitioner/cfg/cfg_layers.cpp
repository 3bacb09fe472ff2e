#include "partitioner/cfg/cfg_layers.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/spelling.h"
#include "partitioner/cfg/cfg_heads.h"
#include "partitioner/cfg/head_warnings.h"

namespace tessera::partitioner {

namespace {

constexpr Activation kActivations[] = {Activation::Linear,
                                       Activation::Relu,
                                       Activation::Leaky,
                                       Activation::Relu6,
                                       Activation::Elu,
                                       Activation::Logistic,
                                       Activation::Tanh,
                                       Activation::Swish,
                                       Activation::Mish,
                                       Activation::Ramp,
                                       Activation::HardMish,
                                       Activation::Gelu,
                                       Activation::HardSigmoid,
                                       Activation::HardSwish};

Activation activation(CfgOptions& options, Activation otherwise) {
  const std::string name = options.word("activation", activation_name(otherwise));
  std::string known;
  for (const Activation each : kActivations) {
    if (name == activation_name(each) || (name == "silu" && each == Activation::Swish)) {
      return each;
    }
    known += std::string(known.empty() ? "" : ", ") + activation_name(each);
  }
  options.refuse("activation", "unknown activation, expected one of " + known);
}

// A layer named in a file: from the first, or, negative, backwards from the layer that names it.
int named_layer(CfgOptions& options, std::string_view key, Index number, int layer) {
  const Index index = number < 0 ? layer + number : number;
  if (number < -layer || index >= layer) {
    options.refuse(key,
                   "layer " + std::to_string(number) + " is not one of the " +
                       std::to_string(layer) +
                       " layers before this one (negative numbers count back from it, others from "
                       "0)");
  }
  return static_cast<int>(index);
}

// Names of a key's value for both axes and for one of them.
struct AxisKeys {
  std::string_view both;
  std::string_view rows;
  std::string_view cols;
};

PerAxis per_axis(CfgOptions& options, const AxisKeys& keys, Index usual) {
  const Index both = options.integer(keys.both, usual);
  return {options.integer(keys.rows, both), options.integer(keys.cols, both)};
}

// Of the end of an axis than of its beginning.
Index more_padding(CfgOptions& options, std::string_view key, Index before) {
  return options.integer(key, options.integer("padding_end", before)) - before;
}

// Darknet multiplies the padding by the dilation, and takes the shape of the map to be that of a
// convolution without either: the two agree where the padding is half of what a filter overlaps.
void dilate(CfgOptions& options, Convolution& convolution) {
  constexpr Index kMostDilation = 1024;
  const Index dilation = options.integer("dilation", 1, 1, kMostDilation);
  if (dilation == 1 || convolution.size == 1) {
    return;
  }
  if (convolution.more_padding != 0 || convolution.size.rows - 1 != 2 * convolution.padding.rows ||
      convolution.size.cols - 1 != 2 * convolution.padding.cols) {
    options.refuse("dilation", "needs filters of an odd size, and pad=1");
  }
  convolution.dilation = dilation;
  convolution.padding = {convolution.padding.rows * dilation, convolution.padding.cols * dilation};
}

// What convolutions and transposed ones have alike.
template <class Filters>
void read_filters(CfgOptions& options, Filters& layer) {
  layer.filters = options.integer("filters", 1);
  layer.size = per_axis(options, {"size", "size_y", "size_x"}, 1);
  layer.stride = per_axis(options, {"stride", "stride_y", "stride_x"}, 1);
  layer.padding = per_axis(options, {"padding", "padding_y", "padding_x"}, 0);
  if (options.integer("pad", 0) != 0) {
    layer.padding = {layer.size.rows / 2, layer.size.cols / 2};
  }
  layer.more_padding = {more_padding(options, "padding_end_y", layer.padding.rows),
                        more_padding(options, "padding_end_x", layer.padding.cols)};
  layer.batch_normalize = options.flag("batch_normalize", false);
  layer.activation = activation(options, Activation::Logistic);
}

ReadLayer read_convolution(CfgOptions& options, int layer) {
  Convolution convolution;
  read_filters(options, convolution);
  dilate(options, convolution);
  convolution.groups = options.integer("groups", 1);
  return {convolution, {layer - 1}};
}

ReadLayer read_deconvolution(CfgOptions& options, int layer) {
  Deconvolution deconvolution;
  read_filters(options, deconvolution);
  return {deconvolution, {layer - 1}};
}

ReadLayer read_maxpool(CfgOptions& options, int layer) {
  if (options.flag("maxpool_depth", false)) {
    for (const std::string_view key :
         {"size", "stride", "stride_x", "stride_y", "padding", "padding_x", "padding_y"}) {
      (void)options.has(key);  // of windows, which a maximum over channels does not have
    }
    return {ChannelPool{.outputs = options.integer("out_channels", 1)}, {layer - 1}};
  }
  (void)options.has("out_channels");
  MaxPool pool;
  const Index stride = options.integer("stride", 1, 1);
  pool.stride = {options.integer("stride_y", stride, 1), options.integer("stride_x", stride, 1)};
  pool.size = options.integer("size", stride, 1, kLargestPool);
  pool.padding = per_axis(options, {"padding", "padding_y", "padding_x"}, pool.size - 1);
  return {pool, {layer - 1}};
}

ReadLayer read_avgpool(CfgOptions& /*options*/, int layer) {
  return {AvgPool{}, {layer - 1}};
}

ReadLayer read_connected(CfgOptions& options, int layer) {
  Connected connected;
  connected.outputs = options.integer("output", 1);
  connected.batch_normalize = options.flag("batch_normalize", false);
  connected.activation = activation(options, Activation::Logistic);
  return {connected, {layer - 1}};
}

ReadLayer read_local(CfgOptions& options, int layer) {
  Local local;
  local.filters = options.integer("filters", 1);
  local.size = options.integer("size", 1);
  local.stride = options.integer("stride", 1);
  // Darknet pads by one cell whatever the size, for a map that would take half the size.
  const bool pads = options.integer("pad", 0) != 0;
  if (pads && local.size != 3) {
    options.refuse("pad", "needs size=3");
  }
  local.padding = pads ? 1 : 0;
  local.activation = activation(options, Activation::Logistic);
  return {local, {layer - 1}};
}

ReadLayer read_dropout(CfgOptions& options, int layer) {
  return {Dropout{.probability = options.real("probability", 0.5)}, {layer - 1}};
}

ReadLayer read_softmax(CfgOptions& options, int layer) {
  Softmax softmax;
  softmax.groups = options.integer("groups", 1);
  softmax.spatial = options.flag("spatial", false);
  softmax.temperature = options.real("temperature", 1);
  softmax.scale = options.real("scale", 1);
  return {softmax, {layer - 1}};
}

ReadLayer read_cost(CfgOptions& options, int layer) {
  if (options.word("type", "sse") != "sse") {
    options.refuse("type",
                   "expected sse (after a softmax the loss is the cross-entropy, else half the "
                   "squared error)");
  }
  return {Cost{.scale = options.real("scale", 1)}, {layer - 1}};
}

ReadLayer read_shortcut(CfgOptions& options, int layer) {
  std::vector<int> inputs = {layer - 1};
  for (const Index number : options.integers("from")) {
    inputs.push_back(named_layer(options, "from", number, layer));
  }
  if (inputs.size() == 1) {
    options.refuse("from", "missing: the layer to add, such as from=-3");
  }
  Shortcut shortcut;
  shortcut.activation = activation(options, Activation::Linear);
  shortcut.alpha = options.real("alpha", 1);
  shortcut.beta = options.real("beta", 1);
  return {shortcut, std::move(inputs)};
}

// The other layer that this one reads.
int read_from(CfgOptions& options, int layer) {
  if (!options.has("from")) {
    options.refuse("from", "missing: the layer to multiply, such as from=-3");
  }
  return named_layer(options, "from", options.integer("from", 0), layer);
}

ReadLayer read_sam(CfgOptions& options, int layer) {
  return {Sam{.activation = activation(options, Activation::Linear)},
          {layer - 1, read_from(options, layer)}};
}

ReadLayer read_scale_channels(CfgOptions& options, int layer) {
  return {ScaleChannels{.activation = activation(options, Activation::Linear),
                        .by_place = options.flag("scale_wh", false)},
          {layer - 1, read_from(options, layer)}};
}

ReadLayer read_route(CfgOptions& options, int layer) {
  std::vector<int> inputs;
  for (const Index number : options.integers("layers")) {
    inputs.push_back(named_layer(options, "layers", number, layer));
  }
  if (inputs.empty()) {
    options.refuse("layers", "missing: the layers to join, such as layers=-1,-4");
  }
  const Route route{.groups = options.integer("groups", 1),
                    .group = options.integer("group_id", 0)};
  return {route, std::move(inputs)};
}

ReadLayer read_upsample(CfgOptions& options, int layer) {
  Upsample upsample;
  upsample.stride = options.integer("stride", 2);
  if (upsample.stride < 0) {
    options.refuse("stride", "a negative stride, to shrink the map, is not supported");
  }
  upsample.scale = options.real("scale", 1);
  const std::string mode = options.word("mode", "nearest");
  if (mode != "nearest" && mode != "bilinear") {
    options.refuse("mode", "expected nearest or bilinear");
  }
  upsample.bilinear = mode == "bilinear";
  return {upsample, {layer - 1}};
}

ReadLayer read_reorg(CfgOptions& options, int layer) {
  const Reorg reorg{.stride = options.integer("stride", 1),
                    .reverse = options.flag("reverse", false)};
  return {reorg, {layer - 1}};
}

ReadLayer read_space_to_depth(CfgOptions& options, int layer) {
  return {SpaceToDepth{.stride = options.integer("stride", 2)}, {layer - 1}};
}

ReadLayer read_channel_shuffle(CfgOptions& options, int layer) {
  return {ChannelShuffle{.groups = options.integer("groups", 2)}, {layer - 1}};
}

ReadLayer read_crop(CfgOptions& options, int layer) {
  Crop crop;
  crop.flip = options.flag("flip", false);
  crop.angle = options.real("angle", 0, 0, 360);
  crop.saturation = options.real("saturation", 1);
  crop.exposure = options.real("exposure", 1);
  for (const auto& [key, value] :
       {std::pair{"saturation", crop.saturation}, std::pair{"exposure", crop.exposure}}) {
    if (value <= 0) {
      options.refuse(key, "must be positive");
    }
  }
  crop.noadjust = options.flag("noadjust", false);
  (void)options.has("crop_height");  // read with [net], as is crop_width
  (void)options.has("crop_width");
  return {crop, {layer - 1}};
}

struct Section {
  std::string_view name;
  std::string_view other_name;  // that Darknet has for it, too
  ReadLayer (*read)(CfgOptions&, int layer);
};

constexpr Section kSections[] = {
    {"convolutional", "conv", read_convolution},
    {"deconvolutional", "deconv", read_deconvolution},
    {"maxpool", "max", read_maxpool},
    {"avgpool", "avg", read_avgpool},
    {"connected", "conn", read_connected},
    {"local", "local", read_local},
    {"dropout", "dropout", read_dropout},
    {"softmax", "soft", read_softmax},
    {"cost", "cost", read_cost},
    {"shortcut", "shortcut", read_shortcut},
    {"sam", "sam", read_sam},
    {"scale_channels", "scale_channels", read_scale_channels},
    {"route", "route", read_route},
    {"upsample", "upsample", read_upsample},
    {"reorg", "reorg", read_reorg},
    {"space_to_depth", "space_to_depth", read_space_to_depth},
    {"channel_shuffle", "channel_shuffle", read_channel_shuffle},
    {"crop", "crop", read_crop},
    {"yolo", "yolo", read_yolo},
    {"yolox", "yolox", read_yolox},
    {"region", "region", read_region},
    {"detection", "detection", read_detection},
};

// Layers of Darknet and its forks that this program does not train.
constexpr std::string_view kOtherSections[] = {
    "Gaussian_yolo", "iseg",      "local_avgpool", "activation",  "logistic",     "l2norm",
    "normalization", "lrn",       "batchnorm",     "rnn",         "gru",          "lstm",
    "crnn",          "conv_lstm", "history",       "contrastive", "implicit_add", "implicit_mul",
    "silence",       "empty",     "reorg3d",       "reorg_old",
};

const Section& section_of(const CfgOptions& options) {
  const CfgSection& section = options.section();
  std::string known;
  std::vector<std::string_view> names(std::begin(kOtherSections), std::end(kOtherSections));
  const bool of_darknet = std::find(names.begin(), names.end(), section.name) != names.end();
  for (const Section& each : kSections) {
    if (section.name == each.name || section.name == each.other_name) {
      return each;
    }
    known += std::string(known.empty() ? "" : ", ") + std::string(each.name);
    names.push_back(each.name);
  }
  const char* what = of_darknet ? "a layer of Darknet that this program does not train"
                                : "not a layer that this program knows";
  throw InputError(options.file(),
                   section.line,
                   '[' + printable_start(section.name) + "] is " + what +
                       (of_darknet ? "" : suggestion(section.name, names)) + " (it trains " +
                       known + ')');
}

}  // namespace

bool is_layer_section(std::string_view name) {
  return std::find(std::begin(kOtherSections), std::end(kOtherSections), name) !=
             std::end(kOtherSections) ||
         std::any_of(std::begin(kSections), std::end(kSections), [&](const Section& each) {
           return name == each.name || name == each.other_name;
         });
}

void read_layer(CfgOptions& options, Network& network) {
  const int layer = network.size();
  const int line = options.section().line;
  const Section& section = section_of(options);
  options.apply_rules(section.name);
  ReadLayer read = section.read(options, layer);
  constexpr Index kMostSteps = 1'000'000'000;
  const LearningRules learning{.rate_factor = options.real("learning_rate", 1, 0),
                               .steps_held = options.integer("dont_update", 0, 0, kMostSteps),
                               .norm_only = options.flag("train_only_bn", false)};
  try {
    add_layer(network, read.operation, std::move(read.inputs), line);
    network.layers.back().learning = learning;
    warn_of_head(options, network);
  } catch (const std::invalid_argument& error) {
    throw InputError(options.file(), line, '[' + options.section().name + "] " + error.what());
  }
}

}  // namespace tessera::partitioner
