#include "engine/session/training_length.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/comm/agreement.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

partitioner::TrainingOptions training_options(const TrainingRequest& request,
                                              const partitioner::ModelFile& model,
                                              const std::optional<TrainingRecord>& before) {
  partitioner::TrainingOptions training = model.training;
  if (before && request.batch > 0 && request.batch != before->images) {
    throw InputError(request.resume,
                     0,
                     fmt::format("was trained with a batch of {}, and --batch {} would leave out "
                                 "pictures of this epoch or see some twice: leave out --batch, or "
                                 "start over from its weights with --weights instead of --resume",
                                 counted(before->images, "image"),
                                 request.batch));
  }
  const Index batch = request.batch > 0 ? request.batch : before ? before->images : training.batch;
  if (request.batch > 0 || batch != training.batch) {
    training.batch = batch;
    training.subdivisions = 1;
  }
  if (request.subdivisions > 0) {
    training.subdivisions = request.subdivisions;
  } else if (before && before->subdivisions > 0) {
    training.subdivisions = before->subdivisions;
  }
  if (training.batch % training.subdivisions != 0) {
    throw InputError(request.model,
                     0,
                     fmt::format("a batch of {} images cannot be divided into {} subdivisions: "
                                 "change --batch or --subdivisions",
                                 training.batch,
                                 training.subdivisions));
  }
  if (request.schedule_steps > 0) {
    training.max_batches = request.schedule_steps;
  }
  return training;
}

TrainingLength training_length(const TrainingRequest& request,
                               Index pictures,
                               partitioner::TrainingOptions& training) {
  TrainingLength length;
  training.epoch_pictures = pictures;
  length.epoch_steps = std::max<Index>(1, (pictures + training.batch - 1) / training.batch);
  length.pictures = pictures;
  length.images = training.batch;
  length.checkpoint_steps = request.checkpoint_every;
  length.last_step = request.steps;
  if (request.epochs > 0) {
    length.last_step = (request.epochs * pictures + training.batch - 1) / training.batch;
  }
  if (length.last_step == 0) {
    length.last_step = training.max_batches;
  }
  if (length.last_step == 0) {
    throw AgreedError(fmt::format(
        "{}: no max_batches in [net]: give the length of training with --steps or --epochs",
        request.model));
  }
  if (training.max_batches == 0) {
    training.max_batches = length.last_step;
  }
  return length;
}

void warn_of_testing_batch(const TrainingRequest& request,
                           const partitioner::ModelFile& model,
                           const Communicator& communicator,
                           const SessionObserver& observer) {
  if (model.training.batch == 1 && request.batch == 0) {
    observer.warn(
        fmt::format("{} has batch=1, as files for testing do: training takes one image per step; "
                    "give --batch B for more",
                    request.model),
        communicator);
  }
}

namespace {

// The fewest values of a channel that statistics of a layer's output are taken of together.
Index fewest_values(const partitioner::Network& network,
                    const partitioner::Plan& plan,
                    BatchNormMode batch_norm,
                    Index images,
                    int layer) {
  const partitioner::MapShape& output = network.layer(layer).output;
  Index fewest = output.rows * output.cols * (images / plan.copies());
  for (int rank = 0; rank < plan.ranks && batch_norm == BatchNormMode::PerTile; ++rank) {
    const Region& owned = plan.tile(layer, rank).owned;
    if (!owned.empty()) {
      fewest = std::min(fewest, owned.images.size() * owned.rows.size() * owned.cols.size());
    }
  }
  return fewest;
}

// What would give them more.
std::string more_values(const partitioner::Plan& plan, BatchNormMode batch_norm) {
  return batch_norm == BatchNormMode::PerTile ? "leave out --batch-norm tile"
         : plan.copies() > 1 ? fmt::format("give --batch {} or more", 2 * plan.copies())
                             : "give --batch 2 or more";
}

}  // namespace

void warn_of_single_values(const TrainingRequest& request,
                           const partitioner::Network& network,
                           const partitioner::Plan& plan,
                           BatchNormMode batch_norm,
                           Index images,
                           const Communicator& communicator,
                           const SessionObserver& observer) {
  for (int layer = 0; layer < network.size(); ++layer) {
    const partitioner::LayerSpec& spec = network.layer(layer);
    if (takes_batch_statistics(spec) &&
        fewest_values(network, plan, batch_norm, images, layer) == 1) {
      observer.warn(fmt::format("{}: batch normalisation of layer {} ([{}], line {}) takes its "
                                "statistics of a single value, which makes it 0 whatever it was: "
                                "{}, or remove batch_normalize there",
                                request.model,
                                layer,
                                kind_name(spec.operation),
                                spec.line,
                                more_values(plan, batch_norm)),
                    communicator);
      return;
    }
  }
}

namespace {

// Why the rate of training that ends at a step is not what the model file has in mind; empty where
// it is.
std::string early_end(const partitioner::TrainingOptions& training, Index last) {
  using partitioner::RatePolicy;
  const Index warm_up = warm_up_steps(training);
  if (warm_up > 0 && last <= warm_up) {
    return fmt::format("{}: the learning rate is still rising when training ends at step {}",
                       training.burn_in > 0
                           ? fmt::format("burn_in={}", training.burn_in)
                           : fmt::format("warmup_epochs={}", training.warm_up_epochs),
                       last);
  }
  if (training.policy == RatePolicy::Yolox &&
      training.max_batches <= warm_up + steps_of_epochs(training, training.flat_epochs)) {
    return fmt::format(
        "flat_epochs={}: behind the warm-up the learning rate is the least from step {} to the "
        "last, {}",
        training.flat_epochs,
        warm_up > 0 ? warm_up + 2 : 1,
        training.max_batches);
  }
  if (steps_before_last_epochs(training) <= 0) {
    return fmt::format(
        "no_mosaic_epochs={}: these are all of the {} steps: there is no mosaic and no mixup",
        training.no_mosaic_epochs,
        training.max_batches);
  }
  if (training.policy == RatePolicy::Steps && training.steps.back() > last) {
    const auto unreached = std::upper_bound(training.steps.begin(), training.steps.end(), last);
    return fmt::format(
        "steps={}: training ends at step {}, before {} of {} changes of the learning "
        "rate",
        *unreached,
        last,
        training.steps.end() - unreached,
        training.steps.size());
  }
  if (training.policy == RatePolicy::Step && training.step > last) {
    return fmt::format(
        "step={}: training ends at step {}, before the learning rate changes", training.step, last);
  }
  return {};
}

}  // namespace

void warn_of_early_end(const TrainingRequest& request,
                       const partitioner::TrainingOptions& training,
                       Index last_step,
                       const Communicator& communicator,
                       const SessionObserver& observer) {
  const std::string what = early_end(training, std::max(last_step, request.schedule_steps));
  if (!what.empty()) {
    observer.warn(fmt::format("{}: {}: train for longer, or change [net]", request.model, what),
                  communicator);
  }
}

namespace {

// The first step from which on the rate is 0, of those up to `last`, which has rate 0. A rate that
// has become 0 stays so.
Index first_without_rate(const partitioner::TrainingOptions& training, Index last) {
  Index with = 0;
  Index without = last;
  while (without - with > 1) {
    const Index middle = with + (without - with) / 2;
    (learning_rate(training, middle) > 0 ? with : without) = middle;
  }
  return without;
}

}  // namespace

void warn_of_zero_rate(const TrainingRequest& request,
                       const partitioner::TrainingOptions& training,
                       Index first_step,
                       Index last_step,
                       const Communicator& communicator,
                       const SessionObserver& observer) {
  const bool rises = training.policy == partitioner::RatePolicy::Yolox && last_step == 1;
  if (last_step <= first_step || learning_rate(training, last_step) > 0 || rises) {
    return;
  }
  const Index from = std::max(first_without_rate(training, last_step), first_step + 1);
  const bool poly = training.policy == partitioner::RatePolicy::Poly;
  const bool has_length = poly || training.policy == partitioner::RatePolicy::Cosine;
  if (poly && from == last_step) {
    return;  // by its formula the last step of the schedule has none
  }
  const std::string remedy =
      has_length ? fmt::format(
                       "the schedule has {} steps: give --schedule-steps {} to let it run until "
                       "the end, or train for fewer steps",
                       training.max_batches,
                       last_step)
                 : "change learning_rate or its policy in [net]";
  observer.warn(
      fmt::format("{}: the learning rate is 0 from step {} to the last, {}: nothing is learnt in "
                  "these {} steps; {}",
                  request.model,
                  from,
                  last_step,
                  last_step - from + 1,
                  remedy),
      communicator);
}

}  // namespace tessera::engine
