// Model files in Darknet's .cfg format: the network and everything else such a file says about
// training it.
//
// Keys that training does not use are accepted; unknown keys are reported once each in `warnings`,
// with file and line. What cannot be used throws InputError with file and line.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "partitioner/network/network.h"
#include "partitioner/network/norm_rule.h"

namespace tessera::partitioner {

enum class RatePolicy { Constant, Step, Steps, Exp, Poly, Sig, Cosine, Yolox };

// How the learning rate and the optimizer behave, as [net] says; defaults are Darknet's.
struct TrainingOptions {
  Index batch = 1;         // images per update
  Index subdivisions = 1;  // an update is this many passes of batch / subdivisions images
  double learning_rate = 0.001;
  double momentum = 0.9;
  bool nesterov = false;
  double decay = 0.0001;
  RatePolicy policy = RatePolicy::Constant;
  Index burn_in = 0;
  double power = 4;            // of poly and of burn-in
  double gamma = 1;            // exp, sig
  Index step = 1;              // step, sig
  double scale = 1;            // step
  double least_rate = 0;       // cosine: where it ends
  Index warm_up_epochs = 0;    // yolox, instead of burn_in
  Index flat_epochs = 15;      // yolox: the last ones
  std::vector<Index> steps;    // steps
  std::vector<double> scales;  // steps
  Index max_batches = 0;       // steps in all; 0: the command line has to say
  // Without mosaic and mixup, see in_last_epochs().
  Index no_mosaic_epochs = 0;
  Index epoch_pictures = 0;  // what the data set says, where anything counts in epochs
  bool adam = false;
  bool decoupled_decay = false;  // of Adam: AdamW
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-7;
  double ema_decay = 0;   // of averages over steps, see ema_decay(); 0: there are none
  bool ema_rises = true;  // to that; else it is that from the first step on
  NormRule norm;          // batch normalisation
};

// How pictures are augmented while training, as [net] says. By default they are flipped and no
// more.
struct AugmentationOptions {
  bool flip = true;
  double angle = 0;  // degrees, to either side
  double aspect = 1;
  double saturation = 1;
  double exposure = 1;
  double hue = 0;
  Index min_crop = 0;  // pixels: the short side is scaled to between these, 0: the input's size
  Index max_crop = 0;
  // Pixels of border around the picture, from which a window of the input's size is cut.
  Index crop_padding = 0;

  // Of detectors, whose heads and [net] say these instead of `angle`, `aspect` and crops.
  double jitter = 0.2;      // of width and height: how far each side is moved in or out
  double resize = 1;        // the picture is scaled by between this and its inverse
  bool letter_box = false;  // keeps its proportions
  bool top_left = false;    // and lies there, beside YOLOX's grey; else in the middle
  bool mosaic = false;      // four pictures in one
  double mosaic_share = 1;  // of the images
  // Half of the time two pictures, one over the other; beside mosaic, another picture over so many
  // of the mosaics.
  bool mixup = false;
  double mixup_share = 1;
  // Multi-scale training, see network/input_sizes.h. 0: all inputs are of one size.
  double random = 0;
  Index resize_step = 0;  // pixels that sides are multiples of; 0: the network's stride
};

struct ModelFile {
  Network network;
  TrainingOptions training;
  AugmentationOptions augmentation;
  MapShape picture;  // what the data stage starts from: larger than the image before a [crop]
  std::string text;  // the file itself, kept in checkpoints
  std::vector<std::string> warnings;
};

// `name` is used in messages only.
[[nodiscard]] ModelFile parse_model(const std::string& text, const std::string& name);

[[nodiscard]] ModelFile read_model(const std::filesystem::path& path);

// The share that the averages of weights and running statistics over steps keep in update `step`,
// counted from 1; the rest is that of the new values. It rises as YOLOX has it.
[[nodiscard]] double ema_decay(const TrainingOptions& training, Index step);

// The steps that have a picture of some epochs, where these begin or end with a step; and those in
// which the rate rises.
[[nodiscard]] Index steps_of_epochs(const TrainingOptions& training, Index epochs);
[[nodiscard]] Index warm_up_steps(const TrainingOptions& training);

// Whether what the policy or augmentation does in a step depends on how long training goes on.
[[nodiscard]] bool depends_on_length(const TrainingOptions& training);

// Whether update `step`, counted from 1, is one of those that have a picture of the last
// `no_mosaic_epochs` epochs of training.max_batches steps; and how many come before them.
[[nodiscard]] bool in_last_epochs(const TrainingOptions& training, Index step);
[[nodiscard]] Index steps_before_last_epochs(const TrainingOptions& training);

// The rate of update `step`, counted from 1, by the policy. `training.max_batches` must be positive
// for poly, cosine and yolox; after it the rate stays at 0, or at the least rate.
//
// Cosine (Loshchilov, Hutter 2017) falls from the first step that is not warm-up, like PyTorch's
// CosineAnnealingLR behind a warm-up: the last step still learns.
//
// Yolox is YOLOX's (yolox/utils/lr_scheduler.py, Megvii), whose first step has rate 0 where there
// is a warm-up.
[[nodiscard]] double learning_rate(const TrainingOptions& training, Index step);

}  // namespace tessera::partitioner
