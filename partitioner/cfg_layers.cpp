#include "partitioner/cfg_layers.h"

#include <stdexcept>
#include <utility>

#include "partitioner/errors.h"

namespace partitioner {

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
                                       Activation::Ramp};

struct ReadLayer {
  Operation operation;
  std::vector<int> inputs;
};

Activation activation(CfgOptions& options, Activation otherwise) {
  const std::string name = options.word("activation", activation_name(otherwise));
  std::string known;
  for (const Activation each : kActivations) {
    if (name == activation_name(each)) {
      return each;
    }
    known += std::string(known.empty() ? "" : ", ") + activation_name(each);
  }
  options.refuse("activation", "unknown activation, expected one of " + known);
}

// Options of Darknet that would make a layer compute something else than it does here.
void refuse_unless_zero(CfgOptions& options, const std::vector<std::string_view>& keys) {
  for (const std::string_view key : keys) {
    if (options.integer(key, 0) != 0) {
      options.refuse(key, "not supported, leave it out");
    }
  }
}

// A layer named in a file: from the first, or, negative, backwards from the layer that names it.
int named_layer(CfgOptions& options, std::string_view key, Index number, int layer) {
  const Index index = number < 0 ? layer + number : number;
  if (number < -layer || index >= layer) {
    options.refuse(key,
                   "layer " + std::to_string(number) + " is none of the " + std::to_string(layer) +
                       " layers before this one (negative numbers count back from it, others from "
                       "0)");
  }
  return static_cast<int>(index);
}

ReadLayer read_convolution(CfgOptions& options, int layer) {
  Convolution convolution;
  convolution.filters = options.integer("filters", 1);
  convolution.size = options.integer("size", 1);
  convolution.stride = options.integer("stride", 1);
  convolution.padding = options.integer("padding", 0);
  if (options.integer("pad", 0) != 0) {
    convolution.padding = convolution.size / 2;
  }
  convolution.groups = options.integer("groups", 1);
  convolution.batch_normalize = options.flag("batch_normalize", false);
  convolution.activation = activation(options, Activation::Logistic);
  refuse_unless_zero(options, {"binary", "xnor", "flipped"});
  options.accept({"dot"});
  return {convolution, {layer - 1}};
}

ReadLayer read_maxpool(CfgOptions& options, int layer) {
  MaxPool pool;
  pool.stride = options.integer("stride", 1, 1);
  pool.size = options.integer("size", pool.stride, 1, kLargestPool);
  pool.padding = options.integer("padding", pool.size - 1);
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
  refuse_unless_zero(options, {"flipped"});
  return {connected, {layer - 1}};
}

ReadLayer read_dropout(CfgOptions& options, int layer) {
  return {Dropout{.probability = options.real("probability", 0.5)}, {layer - 1}};
}

ReadLayer read_softmax(CfgOptions& options, int layer) {
  Softmax softmax;
  softmax.groups = options.integer("groups", 1);
  softmax.spatial = options.flag("spatial", false);
  softmax.temperature = options.real("temperature", 1);
  if (options.has("tree")) {
    options.refuse("tree", "a softmax over a hierarchy of classes is not supported");
  }
  options.accept({"noloss"});
  return {softmax, {layer - 1}};
}

ReadLayer read_cost(CfgOptions& options, int layer) {
  if (options.word("type", "sse") != "sse") {
    options.refuse("type",
                   "expected sse (after a softmax the loss is the cross-entropy, else half the "
                   "squared error)");
  }
  options.accept({"ratio", "noobj", "thresh"});
  return {Cost{.scale = options.real("scale", 1)}, {layer - 1}};
}

ReadLayer read_shortcut(CfgOptions& options, int layer) {
  if (!options.has("from")) {
    options.refuse("from", "missing: the layer to add, such as from=-3");
  }
  const int from = named_layer(options, "from", options.integer("from", 0), layer);
  Shortcut shortcut;
  shortcut.activation = activation(options, Activation::Linear);
  shortcut.alpha = options.real("alpha", 1);
  shortcut.beta = options.real("beta", 1);
  return {shortcut, {layer - 1, from}};
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
  return {upsample, {layer - 1}};
}

ReadLayer read_reorg(CfgOptions& options, int layer) {
  const Reorg reorg{.stride = options.integer("stride", 1),
                    .reverse = options.flag("reverse", false)};
  refuse_unless_zero(options, {"flatten", "extra"});
  return {reorg, {layer - 1}};
}

ReadLayer read_space_to_depth(CfgOptions& options, int layer) {
  return {SpaceToDepth{.stride = options.integer("stride", 2)}, {layer - 1}};
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
  options.accept({"crop_height", "crop_width", "shift"});
  return {crop, {layer - 1}};
}

struct Section {
  std::string_view name;
  std::string_view other_name;  // that Darknet has for it, too
  ReadLayer (*read)(CfgOptions&, int layer);
};

constexpr Section kSections[] = {
    {"convolutional", "conv", read_convolution},
    {"maxpool", "max", read_maxpool},
    {"avgpool", "avg", read_avgpool},
    {"connected", "conn", read_connected},
    {"dropout", "dropout", read_dropout},
    {"softmax", "soft", read_softmax},
    {"cost", "cost", read_cost},
    {"shortcut", "shortcut", read_shortcut},
    {"route", "route", read_route},
    {"upsample", "upsample", read_upsample},
    {"reorg", "reorg", read_reorg},
    {"space_to_depth", "space_to_depth", read_space_to_depth},
    {"crop", "crop", read_crop},
};

const Section& section_of(const CfgOptions& options) {
  const CfgSection& section = options.section();
  std::string known;
  for (const Section& each : kSections) {
    if (section.name == each.name || section.name == each.other_name) {
      return each;
    }
    known += std::string(known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw InputError(options.file(),
                   section.line,
                   '[' + section.name.substr(0, 60) +
                       "] is no layer that this program trains; it knows " + known);
}

// Keys that Darknet reads in any section.
void read_common_keys(CfgOptions& options) {
  options.accept({"truth", "dontsave", "dontload", "numload", "dontloadscales", "smooth"});
  if (options.real("learning_rate", 1) != 1) {
    options.warn("learning_rate", "a rate of its own for one layer is not supported, ignored");
  }
  if (options.real("clip", 0) != 0) {
    options.warn("clip", "limiting gradients is not supported, ignored");
  }
  for (const char* key : {"stopbackward", "onlyforward"}) {
    if (options.integer(key, 0) != 0) {
      options.warn(key, "all layers are trained, ignored");
    }
  }
}

}  // namespace

void read_layer(CfgOptions& options, Network& network) {
  const int layer = network.size();
  const int line = options.section().line;
  ReadLayer read = section_of(options).read(options, layer);
  read_common_keys(options);
  try {
    add_layer(network, read.operation, std::move(read.inputs), line);
  } catch (const std::invalid_argument& error) {
    throw InputError(options.file(), line, '[' + options.section().name + "] " + error.what());
  }
}

}  // namespace partitioner
