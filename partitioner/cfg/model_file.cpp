#include "partitioner/cfg/model_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/regular_file.h"
#include "partitioner/cfg/cfg_layers.h"
#include "partitioner/cfg/cfg_options.h"
#include "partitioner/cfg/cfg_sections.h"
#include "partitioner/network/input_sizes.h"
#include "partitioner/network/losses.h"

namespace tessera::partitioner {

namespace {

constexpr Index kMostBytes = Index{8} << 20U;  // of the file

constexpr Index kLargestSide = (Index{1} << 31) - 1;
constexpr Index kLargestBatch = Index{1} << 20;
constexpr double kUsualFactor = 1.4;  // of random=1
constexpr Index kMostEpochs = 1'000'000;
constexpr Index kMostSteps = 1'000'000'000'000;  // times a batch still an Index

bool is_crop(const CfgSection& section) {
  return section.name == "crop";
}

void require(CfgOptions& options, bool condition, std::string_view key, const char* message) {
  if (!condition) {
    options.refuse(key, message);
  }
}

Index required_side(CfgOptions& options, const char* key) {
  require(options, options.has(key), key, "missing: the network's input needs a size");
  return options.integer(key, 1, 1, kLargestSide);
}

RatePolicy read_policy(CfgOptions& net) {
  static constexpr std::pair<std::string_view, RatePolicy> kPolicies[] = {
      {"constant", RatePolicy::Constant},
      {"step", RatePolicy::Step},
      {"steps", RatePolicy::Steps},
      {"exp", RatePolicy::Exp},
      {"poly", RatePolicy::Poly},
      {"sigmoid", RatePolicy::Sig},
      {"sig", RatePolicy::Sig},
      {"cosine", RatePolicy::Cosine},
      {"yolox", RatePolicy::Yolox}};
  const std::string name = net.word("policy", "constant");
  std::string known;
  for (const auto& [each, policy] : kPolicies) {
    if (name == each) {
      return policy;
    }
    known += std::string(known.empty() ? "" : ", ") + std::string(each);
  }
  net.refuse("policy", "unknown policy, expected one of " + known);
}

void read_rate(CfgOptions& net, TrainingOptions& training) {
  training.learning_rate = net.real("learning_rate", training.learning_rate, 0);
  training.policy = read_policy(net);
  training.burn_in = net.integer("burn_in", training.burn_in, 0, kMostSteps);
  training.power = net.real("power", training.power, 0);
  training.gamma = net.real("gamma", training.gamma, 0);
  training.step = net.integer("step", training.step, 1, kMostSteps);
  training.scale = net.real("scale", training.scale, 0);
  training.least_rate = net.real("learning_rate_min", training.least_rate, 0);
  require(net,
          training.policy != RatePolicy::Cosine || training.least_rate <= training.learning_rate,
          "learning_rate_min",
          "must not be more than learning_rate");
  training.steps = net.integers("steps");
  training.scales = net.reals("scales");
  training.max_batches = net.integer("max_batches", training.max_batches, 0, kMostSteps);
  training.warm_up_epochs = net.integer("warmup_epochs", training.warm_up_epochs, 0, kMostEpochs);
  training.flat_epochs = net.integer("flat_epochs", training.flat_epochs, 0, kMostEpochs);
  require(net,
          training.policy == RatePolicy::Yolox || training.warm_up_epochs == 0,
          "warmup_epochs",
          "is of policy=yolox: give burn_in, in steps");
  require(net,
          training.warm_up_epochs == 0 || training.burn_in == 0,
          "warmup_epochs",
          "says what burn_in says in steps: remove either");
  if (training.policy != RatePolicy::Steps) {
    return;
  }
  require(net, !training.steps.empty(), "steps", "missing: policy=steps needs steps and scales");
  require(net,
          training.steps.size() == training.scales.size(),
          "scales",
          "must have as many numbers as steps");
  require(net,
          std::is_sorted(training.steps.begin(), training.steps.end()),
          "steps",
          "must be in ascending order");
}

void read_optimizer(CfgOptions& net, TrainingOptions& training) {
  training.batch = net.integer("batch", training.batch, 1, kLargestBatch);
  training.subdivisions = net.integer("subdivisions", training.subdivisions, 1);
  require(net,
          training.batch % training.subdivisions == 0,
          "subdivisions",
          ("must divide batch=" + std::to_string(training.batch)).c_str());
  training.momentum = net.real("momentum", training.momentum, 0, 1);
  training.decay = net.real("decay", training.decay, 0);
  training.decoupled_decay = net.flag("adamw", training.decoupled_decay);
  training.adam = net.flag("adam", training.adam) || training.decoupled_decay;
  training.nesterov = net.flag("nesterov", training.nesterov);
  require(net,
          !training.nesterov || !training.adam,
          "nesterov",
          "is a kind of momentum, which Adam does not have: remove it, or adam and adamw");
  training.adam_beta1 = net.real("B1", training.adam_beta1, 0);
  training.adam_beta2 = net.real("B2", training.adam_beta2, 0);
  require(net, training.adam_beta1 < 1, "B1", "must be less than 1");
  require(net, training.adam_beta2 < 1, "B2", "must be less than 1");
  training.adam_epsilon = net.real("eps", training.adam_epsilon, 0);
}

// Darknet's key has no rise.
void read_averages(CfgOptions& net, TrainingOptions& training) {
  training.ema_rises = !net.has("ema_alpha");
  require(net,
          training.ema_rises || !net.has("ema_decay"),
          "ema_alpha",
          "is ema_decay without its rise: remove either");
  const char* const key = training.ema_rises ? "ema_decay" : "ema_alpha";
  training.ema_decay = net.real(key, training.ema_decay, 0);
  require(net, training.ema_decay < 1, key, "must be less than 1");
}

void read_norm(CfgOptions& net, NormRule& norm) {
  const std::string form = net.word("batch_norm_rule", "pytorch");
  if (form == "darknet") {
    norm = kDarknetNorm;
    if (net.has("batch_norm_epsilon")) {
      net.refuse("batch_norm_epsilon", "has no effect with batch_norm_rule=darknet: remove either");
    }
  } else if (form != "pytorch") {
    net.refuse("batch_norm_rule", "unknown rule, expected pytorch or darknet");
  }
  norm.rate = net.real("batch_norm_rate", net.real("bn_rate", norm.rate, 0, 1), 0, 1);
  norm.epsilon = net.real("batch_norm_epsilon", norm.epsilon);
  require(net, norm.epsilon > 0, "batch_norm_epsilon", "must be positive");
}

void read_augmentation(CfgOptions& net, AugmentationOptions& augmentation) {
  augmentation.flip = net.flag("flip", augmentation.flip);
  augmentation.angle = net.real("angle", augmentation.angle, 0, 360);
  augmentation.aspect = net.real("aspect", augmentation.aspect);
  augmentation.saturation = net.real("saturation", augmentation.saturation);
  augmentation.exposure = net.real("exposure", augmentation.exposure);
  for (const auto& [key, value] : {std::pair{"aspect", augmentation.aspect},
                                   std::pair{"saturation", augmentation.saturation},
                                   std::pair{"exposure", augmentation.exposure}}) {
    require(net, value > 0, key, "must be positive");
  }
  augmentation.hue = net.real("hue", augmentation.hue, 0, 1);
  augmentation.crop_padding = net.integer("crop_padding", 0, 0, kLargestSide);
  const Index width = net.integer("width", 1);
  const auto bound = [&](const char* key, const char* ratio, Index otherwise) {
    const Index pixels = net.integer(key, otherwise, 1, kLargestSide);
    if (!net.has(ratio)) {
      return pixels;
    }
    // Darknet prefers this one, and truncates.
    const double most = static_cast<double>(kLargestSide) / static_cast<double>(width);
    const auto part = static_cast<Index>(net.real(ratio, 1, 0, most) * static_cast<double>(width));
    require(net, part >= 1, ratio, "must be at least one pixel");
    return part;
  };
  // With one bound only the other is Darknet's: the width, and twice that.
  const Index least = bound("min_crop", "min_ratio", width);
  const Index most = bound("max_crop", "max_ratio", 2 * width);
  const bool has_max = net.has("max_crop") || net.has("max_ratio");
  if (!has_max && !net.has("min_crop") && !net.has("min_ratio")) {
    return;
  }
  augmentation.min_crop = least;
  augmentation.max_crop = most;
  require(
      net,
      least <= most,
      net.has("max_ratio")  ? "max_ratio"
      : has_max             ? "max_crop"
      : net.has("min_crop") ? "min_crop"
                            : "min_ratio",
      "the smallest crop (default: the width) is more than the largest (default: twice the width)");
}

// Darknet takes a number of inputs, too, and lets it say something else than the size.
void expect_inputs(CfgOptions& net, const MapShape& picture) {
  constexpr Index kUsualSide = Index{1} << 20U;  // beyond, the first layer is refused
  const bool usual = std::max({picture.channels, picture.rows, picture.cols}) <= kUsualSide;
  if (net.has("inputs") && usual && net.integer("inputs", 0) != picture.volume()) {
    net.refuse("inputs",
               "must be channels x height x width, " + std::to_string(picture.volume()) +
                   ": leave it out");
  }
}

bool is_head(const std::string& section) {
  return section == "yolo" || section == "yolox" || section == "region" || section == "detection";
}

// Of a detector's [net].
void read_detector_augmentation(CfgOptions& net, AugmentationOptions& augmentation) {
  const Index letter_box = net.integer("letter_box", 0, 0, 2);
  augmentation.letter_box = letter_box > 0;
  augmentation.top_left = letter_box == 2;
  augmentation.mosaic = net.flag("mosaic", false);
  (void)net.flag("mosaic_bound", true);  // boxes always end with their picture
  augmentation.mixup = net.flag("mixup", false);
  augmentation.mosaic_share = net.real("mosaic_prob", augmentation.mosaic_share, 0, 1);
  augmentation.mixup_share = net.real("mixup_prob", augmentation.mixup_share, 0, 1);
  augmentation.resize_step = net.integer("resize_step", 0, 1, kLargestSide);
  (void)net.has("label_smooth_eps");  // of classifiers: here each head has its own
}

// Of a head; the last one counts.
void read_head_augmentation(CfgOptions& head, AugmentationOptions& augmentation) {
  augmentation.jitter = head.real("jitter", AugmentationOptions().jitter, 0, 1);
  augmentation.resize = head.real("resize", AugmentationOptions().resize, 0, kLargestFactor);
  require(head, augmentation.resize > 0, "resize", "must be positive");
  const double random = head.real("random", 0, 0, kLargestFactor);
  require(head, random == 0 || random >= 1, "random", "must be 0, 1 or a factor above 1");
  augmentation.random = random == 1 ? kUsualFactor : random;
}

void read_net(CfgOptions& net, bool detects, ModelFile& model) {
  model.picture = {
      required_side(net, "channels"), required_side(net, "height"), required_side(net, "width")};
  expect_inputs(net, model.picture);
  read_optimizer(net, model.training);
  read_averages(net, model.training);
  read_norm(net, model.training.norm);
  read_rate(net, model.training);
  read_augmentation(net, model.augmentation);
  if (detects) {
    read_detector_augmentation(net, model.augmentation);
    model.training.no_mosaic_epochs = net.integer("no_mosaic_epochs", 0, 0, kMostEpochs);
  }
  net.apply_rules("net");
}

// What the network sees: the picture, or the window that a [crop] in the first place cuts out of
// it.
MapShape image_shape(const MapShape& picture, const CfgSection& first, const std::string& file) {
  if (!is_crop(first)) {
    return picture;
  }
  CfgOptions crop(first, file);
  const MapShape image{
      picture.channels, crop.integer("crop_height", 1, 1), crop.integer("crop_width", 1, 1)};
  for (const auto& [key, side, most] : {std::tuple{"crop_height", image.rows, picture.rows},
                                        std::tuple{"crop_width", image.cols, picture.cols}}) {
    require(crop, crop.has(key), key, "missing: the size of the window to cut out");
    if (side > most) {
      crop.refuse(key, "more than the " + std::to_string(most) + " pixels that [net] says");
    }
  }
  return image;
}

// Collects complaints, each about the same key of the same kind of section once, and no more than a
// person would read.
class Warnings {
 public:
  explicit Warnings(std::vector<std::string>& messages) : messages_(messages) {}

  void add(const CfgOptions& options) {
    for (const CfgOptions::Complaint& complaint : options.complaints()) {
      if (seen_.size() > kMost || !seen_.insert({options.section().name, complaint.key}).second) {
        continue;
      }
      messages_.push_back(seen_.size() <= kMost
                              ? complaint.message
                              : options.file() + ": there are more warnings than these");
    }
  }

 private:
  static constexpr std::size_t kMost = 100;

  std::vector<std::string>& messages_;
  std::set<std::pair<std::string, std::string>> seen_;
};

}  // namespace

namespace {

// Layers up to the last one with stopbackward=1 do not learn, and none up to one with
// stopbackward=N in the first N steps. `steps`: the values of all sections.
void freeze_where_told(const std::vector<CfgSection>& sections,
                       const std::vector<Index>& steps,
                       const std::string& file,
                       Network& network) {
  int always = -1;
  for (int layer = 0; layer < network.size(); ++layer) {
    const auto section = static_cast<std::size_t>(layer) + 1;
    const Index value = steps[static_cast<std::size_t>(layer)];
    if (value == 0) {
      continue;
    }
    try {
      freeze(network, layer);
    } catch (const std::invalid_argument& error) {
      throw InputError(
          file, sections[section].line, fmt::format("stopbackward={}: {}", value, error.what()));
    }
    if (value == 1) {
      always = layer;
    } else {
      network.layers[static_cast<std::size_t>(layer)].frozen_steps = value;
    }
  }
  freeze(network, always);
}

// Objects are given to the cells of all [yolox] sections together, and their losses are divided by
// the number of these cells, which those of others are not.
void expect_alike(const Network& network, const std::string& file) {
  const std::vector<int> heads = assigned_heads(network);
  const auto head_of = [&](int layer) {
    return std::get<YoloxHead>(network.layer(layer).operation);
  };
  for (const Loss& loss : losses(network)) {
    const int line = network.layer(loss.layer).line;
    if (heads.empty()) {
      return;
    }
    if (std::find(heads.begin(), heads.end(), loss.layer) == heads.end()) {
      throw InputError(file,
                       line,
                       std::string("[") + kind_name(network.layer(loss.layer).operation) +
                           "] has a loss of its own beside [yolox], which is not supported");
    }
    YoloxHead alike = head_of(loss.layer);
    const YoloxHead first = head_of(heads.front());
    alike.stride = first.stride;
    if (alike != first) {
      throw InputError(file,
                       line,
                       "[yolox] differs from the one in line " +
                           std::to_string(network.layer(heads.front()).line) +
                           ": all keys but stride must be the same in all of them");
    }
  }
}

// train_only_bn says it of all layers before, too.
void hold_weights_where_told(Network& network) {
  bool held = false;
  for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer) {
    held = held || layer->learning.norm_only;
    layer->learning.norm_only = held;
  }
}

}  // namespace

ModelFile parse_model(const std::string& text, const std::string& name) {
  const std::vector<CfgSection> sections = read_cfg_sections(text, name);
  if (!is_net(sections[0].name)) {
    const bool known = is_layer_section(sections[0].name);
    throw InputError(name,
                     sections[0].line,
                     known ? "the first section is [" + sections[0].name + "], it must be [net]"
                           : "this is not a Darknet model file: it has to start with [net]");
  }
  if (sections.size() == 1) {
    throw InputError(name, sections[0].line, "no layers after [net]");
  }
  ModelFile model;
  model.text = text;
  Warnings warnings(model.warnings);
  CfgOptions net(sections[0], name);
  const bool detects = std::any_of(
      sections.begin(), sections.end(), [](const CfgSection& each) { return is_head(each.name); });
  read_net(net, detects, model);
  model.network.max_gradient_norm = net.real("max_gradient_norm", 0, 0);
  warnings.add(net);
  model.network.image = image_shape(model.picture, sections[1], name);
  std::vector<Index> stops;
  for (std::size_t i = 1; i < sections.size(); ++i) {
    CfgOptions options(sections[i], name);
    read_layer(options, model.network);
    if (is_head(sections[i].name)) {
      read_head_augmentation(options, model.augmentation);
    }
    stops.push_back(options.integer("stopbackward", 0, 0, kMostSteps));
    warnings.add(options);
  }
  freeze_where_told(sections, stops, name, model.network);
  hold_weights_where_told(model.network);
  expect_alike(model.network, name);
  return model;
}

ModelFile read_model(const std::filesystem::path& path) {
  if (!is_there(path)) {
    throw InputError(path.string(), 0, "no such model file");
  }
  return parse_model(read_regular_file(path, "a model file", kMostBytes), path.string());
}

}  // namespace tessera::partitioner
