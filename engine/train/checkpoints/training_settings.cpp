#include "engine/train/checkpoints/training_settings.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <type_traits>
#include <variant>

#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

using partitioner::RatePolicy;

const char* name_of_policy(RatePolicy policy) {
  switch (policy) {
    case RatePolicy::Constant:
      return "constant";
    case RatePolicy::Step:
      return "step";
    case RatePolicy::Steps:
      return "steps";
    case RatePolicy::Exp:
      return "exp";
    case RatePolicy::Poly:
      return "poly";
    case RatePolicy::Sig:
      return "sigmoid";
    case RatePolicy::Cosine:
      return "cosine";
    case RatePolicy::Yolox:
      return "yolox";
  }
  return "";
}

// Adds each name with its value.
class Adder {
 public:
  explicit Adder(TrainingSettings& settings) : settings_(settings) {}

  template <class Value>
  void add(const std::string& name, const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      settings_[name] = value ? "1" : "0";
    } else {
      settings_[name] = fmt::format("{}", value);
    }
  }
  template <class Value>
  void add_if(bool condition, const std::string& name, const Value& value) {
    if (condition) {
      add(name, value);
    }
  }

 private:
  TrainingSettings& settings_;
};

// All members are named, here and below, so that none is added without a decision about it.
void add_optimizer(const partitioner::TrainingOptions& training, Adder& settings) {
  const auto& [batch,
               subdivisions,
               learning_rate,
               momentum,
               nesterov,
               decay,
               policy,
               burn_in,
               power,
               gamma,
               step,
               scale,
               least_rate,
               warm_up_epochs,
               flat_epochs,
               steps,
               scales,
               max_batches,
               no_mosaic_epochs,
               epoch_pictures,
               adam,
               decoupled_decay,
               adam_beta1,
               adam_beta2,
               adam_epsilon,
               ema_decay,
               ema_rises,
               norm] = training;
  const bool exp = policy == RatePolicy::Exp;
  const bool sigmoid = policy == RatePolicy::Sig;
  const bool yolox = policy == RatePolicy::Yolox;
  settings.add("learning_rate", learning_rate);
  settings.add("policy", name_of_policy(policy));
  settings.add("burn_in", burn_in);
  settings.add_if((burn_in > 0 && !yolox) || policy == RatePolicy::Poly, "power", power);
  settings.add_if(exp || sigmoid, "gamma", gamma);
  settings.add_if(sigmoid || policy == RatePolicy::Step, "step", step);
  settings.add_if(policy == RatePolicy::Step, "scale", scale);
  settings.add_if(policy == RatePolicy::Cosine, "learning_rate_min", least_rate);
  settings.add_if(yolox, "warmup_epochs", warm_up_epochs);
  settings.add_if(yolox, "flat_epochs", flat_epochs);
  settings.add_if(policy == RatePolicy::Steps, "steps", fmt::format("{}", fmt::join(steps, ",")));
  settings.add_if(policy == RatePolicy::Steps, "scales", fmt::format("{}", fmt::join(scales, ",")));
  settings.add("no_mosaic_epochs", no_mosaic_epochs);
  settings.add("decay", decay);
  settings.add("adam", adam);
  settings.add_if(!adam, "momentum", momentum);
  settings.add_if(!adam, "nesterov", nesterov);
  settings.add_if(adam, "adamw", decoupled_decay);
  settings.add_if(adam, "B1", adam_beta1);
  settings.add_if(adam, "B2", adam_beta2);
  settings.add_if(adam, "eps", adam_epsilon);
  settings.add("ema_decay", ema_rises ? ema_decay : 0);
  settings.add("ema_alpha", ema_rises ? 0 : ema_decay);
  const auto& [form, norm_rate, norm_epsilon] = norm;
  const bool of_darknet = form == partitioner::NormForm::Darknet;
  settings.add("batch_norm_rate", norm_rate);
  settings.add_if(!of_darknet, "batch_norm_epsilon", norm_epsilon);
  settings.add("batch_norm_rule", of_darknet ? "darknet" : "pytorch");
}

// The last of them are of detectors alone.
void add_augmentation(const partitioner::AugmentationOptions& augmentation,
                      bool detects,
                      Adder& settings) {
  const auto& [flip,
               angle,
               aspect,
               saturation,
               exposure,
               hue,
               min_crop,
               max_crop,
               crop_padding,
               jitter,
               resize,
               letter_box,
               top_left,
               mosaic,
               mosaic_share,
               mixup,
               mixup_share,
               random,
               resize_step] = augmentation;
  (void)random;  // a record has the factor that is in effect
  settings.add("flip", flip);
  settings.add("angle", angle);
  settings.add("aspect", aspect);
  settings.add("saturation", saturation);
  settings.add("exposure", exposure);
  settings.add("hue", hue);
  settings.add("min_crop", min_crop);
  settings.add("max_crop", max_crop);
  settings.add("crop_padding", crop_padding);
  settings.add_if(detects, "jitter", jitter);
  settings.add_if(detects, "resize", resize);
  settings.add_if(detects, "letter_box", top_left ? 2 : letter_box ? 1 : 0);
  settings.add_if(detects, "mosaic", mosaic);
  settings.add_if(detects, "mixup", mixup);
  settings.add_if(detects && mosaic, "mosaic_prob", mosaic_share);
  settings.add_if(detects && mosaic && mixup, "mixup_prob", mixup_share);
  settings.add_if(detects && resize_step > 0, "resize_step", resize_step);
}

std::string anchors_text(const std::vector<partitioner::Anchor>& anchors) {
  std::string text;
  for (const partitioner::Anchor& anchor : anchors) {
    text += fmt::format("{}{},{}", text.empty() ? "" : ", ", anchor.width, anchor.height);
  }
  return text;
}

// What the fingerprint of a network leaves out of a layer.
class LayerSettings {
 public:
  LayerSettings(Adder& settings, int layer) : settings_(settings), layer_(layer) {}

  void operator()(const partitioner::Dropout& layer) { add("probability", layer.probability); }
  void operator()(const partitioner::Softmax& layer) {
    add("temperature", layer.temperature);
    add("scale", layer.scale);
  }
  void operator()(const partitioner::Cost& layer) { add("scale", layer.scale); }
  void operator()(const partitioner::Shortcut& layer) {
    add("alpha", layer.alpha);
    add("beta", layer.beta);
  }
  void operator()(const partitioner::Upsample& layer) { add("scale", layer.scale); }
  void operator()(const partitioner::Crop& layer) {
    const auto& [flip, angle, saturation, exposure, noadjust] = layer;
    add("flip", flip);
    add("angle", angle);
    add("saturation", saturation);
    add("exposure", exposure);
    add("noadjust", noadjust);
  }
  void operator()(const partitioner::YoloHead& head) {
    const auto& [classes,
                 anchors,
                 mask,
                 most_boxes,
                 ignore,
                 truth,
                 iou,
                 iou_kind,
                 loss,
                 boxes,
                 of_classes,
                 objectness,
                 most_delta,
                 scale_xy,
                 new_coords,
                 smooth,
                 smoothing,
                 focal,
                 weights,
                 suppression,
                 beta_nms] = head;
    (void)suppression;  // of what is found, not of what is learnt, as is the next
    (void)beta_nms;
    add("classes", classes);
    add("anchors", anchors_text(anchors));
    add("mask", fmt::format("{}", fmt::join(mask, ",")));
    add("max", most_boxes);
    add("ignore_thresh", ignore);
    add("truth_thresh", truth);
    add("iou_thresh", iou);
    add("iou_thresh_kind", static_cast<int>(iou_kind));
    add("iou_loss", static_cast<int>(loss));
    add("iou_normalizer", boxes);
    add("cls_normalizer", of_classes);
    add("obj_normalizer", objectness);
    add("max_delta", std::isfinite(most_delta) ? most_delta : 0);
    add("scale_x_y", scale_xy);
    add("new_coords", new_coords);
    add("objectness_smooth", smooth);
    add("label_smooth_eps", smoothing);
    add("focal_loss", focal);
    add("counters_per_class", fmt::format("{}", fmt::join(weights, ",")));
  }
  void operator()(const partitioner::RegionHead& head) {
    const auto& [classes,
                 anchors,
                 most_boxes,
                 softmax,
                 match,
                 rescore,
                 threshold,
                 coordinates,
                 objects,
                 no_objects,
                 of_classes] = head;
    add("classes", classes);
    add("anchors", anchors_text(anchors));
    add("max", most_boxes);
    add("softmax", softmax);
    add("bias_match", match);
    add("rescore", rescore);
    add("thresh", threshold);
    add("coord_scale", coordinates);
    add("object_scale", objects);
    add("noobject_scale", no_objects);
    add("class_scale", of_classes);
  }
  void operator()(const partitioner::YoloxHead& head) {
    const auto& [classes, stride, boxes, objectness, of_classes, l1, most_boxes] = head;
    add("classes", classes);
    add("stride", stride);
    add("iou_normalizer", boxes);
    add("obj_normalizer", objectness);
    add("cls_normalizer", of_classes);
    add("l1", l1 ? static_cast<int>(*l1) : -1);
    add("max", most_boxes);
  }
  void operator()(const partitioner::GridHead& head) {
    const auto& [side,
                 boxes,
                 classes,
                 softmax,
                 square_roots,
                 rescore,
                 forced,
                 coordinates,
                 objects,
                 no_objects,
                 of_classes] = head;
    add("side", side);
    add("num", boxes);
    add("classes", classes);
    add("softmax", softmax);
    add("sqrt", square_roots);
    add("rescore", rescore);
    add("forced", forced);
    add("coord_scale", coordinates);
    add("object_scale", objects);
    add("noobject_scale", no_objects);
    add("class_scale", of_classes);
  }
  void operator()(const partitioner::Convolution& /*layer*/) {}
  void operator()(const partitioner::Deconvolution& /*layer*/) {}
  void operator()(const partitioner::MaxPool& /*layer*/) {}
  void operator()(const partitioner::AvgPool& /*layer*/) {}
  void operator()(const partitioner::Connected& /*layer*/) {}
  void operator()(const partitioner::Route& /*layer*/) {}
  void operator()(const partitioner::Reorg& /*layer*/) {}
  void operator()(const partitioner::SpaceToDepth& /*layer*/) {}
  void operator()(const partitioner::ChannelShuffle& /*layer*/) {}
  void operator()(const partitioner::ChannelPool& /*layer*/) {}
  void operator()(const partitioner::Local& /*layer*/) {}
  void operator()(const partitioner::Sam& /*layer*/) {}
  void operator()(const partitioner::ScaleChannels& /*layer*/) {}

 private:
  template <class Value>
  void add(const char* name, const Value& value) {
    settings_.add(fmt::format("{} of layer {}", name, layer_), value);
  }

  Adder& settings_;
  int layer_;
};

void add_learning(const partitioner::LearningRules& rules, int layer, Adder& settings) {
  const auto& [rate_factor, steps_held, norm_only] = rules;
  settings.add_if(rate_factor != 1, fmt::format("learning_rate of layer {}", layer), rate_factor);
  settings.add_if(steps_held > 0, fmt::format("held steps of layer {}", layer), steps_held);
  settings.add_if(norm_only, fmt::format("train_only_bn of layer {}", layer), norm_only);
}

}  // namespace

TrainingSettings training_settings(const partitioner::TrainingOptions& training,
                                   const partitioner::AugmentationOptions& augmentation,
                                   const partitioner::Network& network) {
  TrainingSettings settings;
  Adder adder(settings);
  add_optimizer(training, adder);
  adder.add("max_gradient_norm", network.max_gradient_norm);
  add_augmentation(augmentation, is_detector(network), adder);
  for (int layer = 0; layer < network.size(); ++layer) {
    std::visit(LayerSettings(adder, layer), network.layer(layer).operation);
    add_learning(network.layer(layer).learning, layer, adder);
  }
  return settings;
}

}  // namespace tessera::engine
