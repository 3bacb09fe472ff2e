#include "partitioner/cfg/cfg_keys.h"

#include <optional>
#include <system_error>

#include "partitioner/base/number_text.h"

namespace tessera::partitioner {

namespace {

using enum KeyEffect;

constexpr KeyRule kRules[] = {
    {"convolutional", "antialiasing", Computed},
    {"convolutional", "assisted_excitation", Computed},
    {"convolutional", "share_index", Computed, ""},
    {"convolutional", "cbn", Computed},
    {"convolutional", "binary", Computed},
    {"convolutional", "xnor", Computed},
    {"convolutional", "bin_output", Computed},
    {"convolutional", "sway", Computed},
    {"convolutional", "rotate", Computed},
    {"convolutional", "stretch", Computed},
    {"convolutional", "stretch_sway", Computed},
    {"convolutional", "reverse", Computed},
    {"convolutional", "coordconv", Computed},
    {"convolutional", "deform", Computed},
    {"convolutional", "flipped", Computed},
    {"convolutional", "dot", Computed},
    {"convolutional", "grad_centr", Computed},
    {"convolutional", "angle", None},  // of rotate and stretch
    {"convolutional", "stream", None},
    {"convolutional", "wait_stream", None},
    {"maxpool", "antialiasing", Computed},
    {"maxpool", "maxpool_zero_nonmax", Computed},
    {"connected", "flipped", Computed},
    {"dropout", "dropblock", Computed},
    {"dropout", "dropblock_size_rel", None},  // of dropblock, as is the next
    {"dropout", "dropblock_size_abs", None},
    {"softmax", "tree", Computed, ""},
    {"softmax", "noloss", Computed},
    {"cost", "ratio", Training},
    {"cost", "thresh", Training},
    {"cost", "noobj", None},  // of other types of cost
    {"shortcut", "weights_type", Computed, "none"},
    {"shortcut", "weights_normalization", Computed, "none"},
    {"shortcut", "weights_normalizion", Computed, "none"},  // as some files write it
    {"shortcut", "assisted_excitation", Computed},
    {"route", "stream", None},
    {"route", "wait_stream", None},
    {"reorg", "flatten", Computed},
    {"reorg", "extra", Computed},
    {"crop", "shift", None},  // Darknet shifts colours on a GPU only
    {"yolo", "map", Computed, ""},
    {"yolo", "embedding_layer", Computed, ""},
    {"yolo", "track_history_size", None},  // of tracking, as are the next seven
    {"yolo", "sim_thresh", None},
    {"yolo", "dets_for_track", None},
    {"yolo", "dets_for_show", None},
    {"yolo", "track_ciou_norm", None},
    {"yolo", "track_id", None},
    {"yolo", "cls_thresh", None},
    {"yolo", "show_details", None},
    {"region", "tree", Computed, ""},
    {"region", "map", Computed, ""},
    {"region", "background", Computed},
    {"region", "classfix", Training},
    {"region", "mask_scale", None},  // of more than four coordinates
    {"region", "log", None},         // Darknet reads these and does not use them
    {"region", "sqrt", None},
    {"region", "absolute", None},
    {"region", "focal_loss", Computed},
    {"detection", "reorg", None},
    {"detection", "max", None},  // of lists of objects: a grid holds one for each cell

    {"*", "truth", Computed},
    {"*", "clip", Computed},
    {"*", "smooth", Computed},
    {"*", "onlyforward", Computed},
    {"*", "burnin_update", Computed},
    {"*", "dontload", Training},
    {"*", "dontsave", Training},
    {"*", "dontloadscales", Training},
    {"*", "numload", Training},
    {"*", "dynamic_minibatch", Computed},

    {"net", "time_steps", Computed, "1"},
    {"net", "letter_box", Computed},
    {"net", "label_smooth_eps", Training},
    {"net", "mosaic", Training},
    {"net", "mosaic_bound", None},  // of mosaic, as are the next three
    {"net", "mosaic_prob", None},
    {"net", "mixup_prob", None},
    {"net", "no_mosaic_epochs", None},
    {"net", "cutmix", Training},
    {"net", "mixup", Training},
    {"net", "blur", Training},
    {"net", "gaussian_noise", Training},
    {"net", "hue2", Training},
    {"net", "center", Training},
    {"net", "crop", Training},
    {"net", "random", Training},
    {"net", "clip", Training},
    {"net", "grad_centr", Training},
    {"net", "dynamic_minibatch", Training},
    {"net", "weights_reject_freq", Training},
    {"net", "equidistant_point", Training},
    {"net", "badlabels_rejection_percentage", Training},
    {"net", "badlabels_reject_threshold", Training},
    {"net", "num_sigmas_reject_badlabels", Training},
    {"net", "delta_normalizer", Training, "1"},
    {"net", "adversarial_lr", Training},
    {"net", "attention", Training},
    {"net", "unsupervised", Training},
    {"net", "contrastive", Training},
    {"net", "contrastive_jit_flip", Training},
    {"net", "contrastive_color", Training},
    {"net", "track", Training},
    {"net", "augment_speed", None},  // of track, as is the next
    {"net", "seq_scales", None},
    {"net", "notruth", None},
    {"net", "seen", None},
    {"net", "sequential_subdivisions", None},
    {"net", "init_sequential_subdivisions", None},
    {"net", "optimized_memory", None},
    {"net", "workspace_size_limit_MB", None},
    {"net", "use_cuda_graph", None},
    {"net", "loss_scale", None},
    {"net", "try_fix_nan", None},
    {"net", "max_chart", None},
    {"net", "max_chart_loss", None},
    {"net", "show_receptive_field", None},
    {"net", "resize_step", None},
    {"net", "sgdr_cycle", None},  // of policy=sgdr, as are the next three
    {"net", "sgdr_mult", None},
    {"net", "batches_per_cycle", None},
    {"net", "batches_cycle_mult", None},
};

bool concerns(const KeyRule& rule, std::string_view section) {
  return rule.section == section || (rule.section == "*" && section != "net");
}

}  // namespace

const KeyRule* key_rule(std::string_view section, std::string_view key) {
  for (const KeyRule& rule : kRules) {
    if (rule.key == key && concerns(rule, section)) {
      return &rule;
    }
  }
  return nullptr;
}

std::vector<std::string_view> ruled_keys(std::string_view section) {
  std::vector<std::string_view> keys;
  for (const KeyRule& rule : kRules) {
    if (concerns(rule, section)) {
      keys.push_back(rule.key);
    }
  }
  return keys;
}

bool same_value(std::string_view value, std::string_view neutral) {
  const auto as_number = parsed_number<double>(value);
  return value == neutral || (as_number && as_number == parsed_number<double>(neutral));
}

}  // namespace tessera::partitioner
