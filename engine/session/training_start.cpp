#include "engine/session/training_start.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unistd.h>

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/files/own_file.h"
#include "engine/files/safetensors.h"
#include "engine/files/written_bytes.h"
#include "engine/recovery/kept_state.h"
#include "engine/run_files/metrics.h"
#include "engine/run_files/names.h"
#include "engine/session/model_setup.h"
#include "engine/train/checkpoints/intact_checkpoint.h"
#include "engine/train/checkpoints/weights_file.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

void refuse_to_resume(const TrainingRequest& request,
                      const std::optional<std::string>& difference,
                      const char* remedy) {
  if (difference) {
    throw AgreedError(
        fmt::format("{}: {}: {}, or start over from its weights with --weights instead of --resume",
                    request.resume,
                    *difference,
                    remedy));
  }
}

// Takes the weights that are asked for; without any, random ones stay.
void take_weights(const TrainingRequest& request,
                  const partitioner::FrozenLayers& frozen,
                  const partitioner::Network& network,
                  Trainer& trainer,
                  const Communicator& communicator,
                  const SessionObserver& observer) {
  if (request.weights.empty()) {
    if (request.resume.empty() && frozen.last >= 0) {
      observer.warn(
          "frozen layers keep their random initial weights: give --weights to start with others",
          communicator);
    }
    return;
  }
  const FittingWeights weights = load_fitting_weights(request.weights,
                                                      network,
                                                      trainer.options().training.norm,
                                                      trainer.execution().parameters(),
                                                      communicator);
  on_root(communicator, [&] {
    if (!weights.taken.empty()) {
      observer.say(fmt::format("taken from {}: {}\n", printable(request.weights), weights.taken));
    }
  });
  for (const std::string& line : weights.misfits) {
    observer.warn(line, communicator);
  }
}

// The checkpoint that is meant by what was given to resume from: of a run folder its newest intact
// one, with a warning of each that is not; a file is what it is, and where its header cannot be
// read the error names an intact one beside it.
std::string checkpoint_to_resume(const std::string& given,
                                 const Communicator& communicator,
                                 const SessionObserver& observer) {
  if (given.empty()) {
    return given;
  }
  std::string file = given;
  on_root(communicator, [&] {
    std::error_code error;
    if (std::filesystem::is_directory(given, error)) {
      const IntactCheckpoint found = newest_intact_checkpoint(given);
      for (const std::string& refused : found.refused) {
        observer.warn(fmt::format(
            "{}; going on from {}, after step {}", refused, found.file.string(), found.step));
      }
      file = found.file.string();
      return;
    }
    try {
      const SafetensorsReader header(given);
    } catch (const InputError& problem) {
      throw InputError(with_intact_other(problem.what(), given));
    }
  });
  return texts_of_ranks(communicator, file).front();
}

// The newest intact one of the run's own folder; empty where it has none.
std::string own_checkpoint(const std::string& run, const Communicator& communicator) {
  std::string file;
  if (communicator.rank() == 0) {
    try {
      file = newest_intact_checkpoint(run).file.string();
    } catch (const InputError&) {
      // What was kept is enough, and a run that has neither begins again.
    }
  }
  return texts_of_ranks(communicator, file).front();
}

}  // namespace

TrainingRequest request_from_start(TrainingRequest request,
                                   const RunEnvironment& environment,
                                   const Communicator& communicator,
                                   const SessionObserver& observer) {
  if (environment.started_again) {
    request.replace = false;
    if (const std::string own = own_checkpoint(request.run, communicator); !own.empty()) {
      request.resume = own;
      request.weights.clear();
      return request;
    }
  }
  request.resume = checkpoint_to_resume(request.resume, communicator, observer);
  request.weights = weights_file(request.weights, communicator);
  return request;
}

std::optional<TrainingRecord> record_to_resume(const TrainingRequest& request,
                                               const partitioner::Network& network,
                                               const Communicator& communicator) {
  if (request.resume.empty()) {
    return std::nullopt;
  }
  auto record = stored_training_record(request.resume, communicator);
  const auto& layers = network.layers;
  if (record && std::none_of(layers.begin(), layers.end(), partitioner::takes_batch_statistics)) {
    record->batch_norm = BatchNormMode::Sync;
  }
  return record;
}

partitioner::Network network_to_train(const TrainingRequest& request,
                                      const partitioner::Network& network,
                                      const Communicator& communicator) {
  if (request.freeze != kFreezeWeights) {
    return agreed(communicator, [&] { return frozen(network, request.freeze); });
  }
  if (request.weights.empty()) {
    throw AgreedError(
        "--freeze weights needs --weights FILE: it freezes the layers that the file has");
  }
  const int last = last_layer_present(request.weights, network, communicator);
  return agreed(communicator, [&] {
    partitioner::Network result = network;
    try {
      freeze(result, last);
    } catch (const std::invalid_argument& error) {
      throw InputError(fmt::format("--freeze weights: {}", error.what()));
    }
    return result;
  });
}

partitioner::ModelFile model_to_train(const TrainingRequest& request,
                                      const Communicator& communicator,
                                      const SessionObserver& observer) {
  partitioner::ModelFile model = load_model(request.model, communicator, observer);
  model.network = network_to_train(request, model.network, communicator);
  if (request.resume.empty()) {
    return model;
  }
  const partitioner::FrozenLayers now = frozen_layers(model.network);
  const auto before = checkpoint_frozen_layers(request.resume, communicator);
  const bool of_another_network = before.last_in(1) >= model.network.size();  // which is said later
  if (before == now || of_another_network) {
    return model;
  }
  const std::string difference =
      fmt::format("was trained with {}, {} with {}",
                  to_text(before),
                  request.freeze.empty() ? request.model + " is" : "--freeze " + request.freeze,
                  to_text(now));
  if (!request.freeze.empty()) {
    refuse_to_resume(request, difference, "leave out --freeze");
  }
  observer.warn(
      fmt::format("{} {}: it goes on with {}", request.resume, difference, to_text(before)),
      communicator);
  throw_agreed(communicator, problem_of([&] {
                 try {
                   freeze(model.network, before);
                 } catch (const std::invalid_argument& error) {
                   throw InputError(request.resume, 0, error.what());
                 }
               }));
  return model;
}

std::optional<Preparation> preparation_before(const TrainingRequest& request,
                                              const Communicator& communicator) {
  const std::string& file = request.resume.empty() ? request.weights : request.resume;
  return file.empty() ? std::nullopt : stored_preparation(file, communicator);
}

RenderingRules training_rules(const TrainingRequest& request,
                              const std::optional<Preparation>& before,
                              const partitioner::ModelFile& model,
                              const Communicator& communicator,
                              const SessionObserver& observer) {
  const PixelConvention given{request.mean, request.stddev};
  if (request.resume.empty()) {
    return rules_for_weights(request.weights, before, model, given, communicator, observer);
  }
  RenderingRules rules = rendering_rules(model, convention_in_effect(given, before));
  if (before) {
    refuse_to_resume(request,
                     pixel_difference(*before, preparation_of(rules, {})),
                     "leave out --mean and --std and give the model that it was trained with");
  }
  return rules;
}

void compare_classes(const TrainingRequest& request,
                     const std::optional<Preparation>& before,
                     const Preparation& now,
                     const Communicator& communicator,
                     const SessionObserver& observer) {
  const auto difference = before ? class_difference(*before, now) : std::nullopt;
  if (!request.resume.empty()) {
    refuse_to_resume(request, difference, "give the data set that it was trained on");
  } else if (difference) {
    observer.warn(fmt::format("{} {}: training continues with the classes of {}",
                              request.weights,
                              *difference,
                              request.data),
                  communicator);
  }
}

std::uint64_t training_seed(const TrainingRequest& request, const Communicator& communicator) {
  if (request.seed || request.resume.empty()) {
    return request.seed.value_or(1);
  }
  return checkpoint_seed(request.resume, communicator);
}

Index post_local_steps(const TrainingRequest& request,
                       const partitioner::Synchronisation& sync,
                       Index last_step,
                       const Communicator& communicator) {
  if (sync.mode != partitioner::SyncMode::PostLocal) {
    return 0;
  }
  const Index before =
      request.resume.empty() ? 0 : checkpoint_post_local_steps(request.resume, communicator);
  if (request.local_after > 0) {
    if (before > 0 && request.local_after != before) {
      throw AgreedError(
          fmt::format("{} is of a run whose replicas part after step {}: leave out --local-after",
                      request.resume,
                      before));
    }
    return request.local_after;
  }
  return before > 0 ? before : std::max<Index>(last_step / 2, 1);
}

namespace {

// Whether a power cut has left half a line.
bool ends_inside_line(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return file.seekg(-1, std::ios::end) && file.get() != '\n';
}

// Steps of which a run's metrics have no line, since the device that wrote them was lost before
// they were copied: what is known of them. Where that cannot be written the run goes on without.
void add_lost_lines(const std::filesystem::path& metrics, const std::vector<StepLoss>& latest) {
  const Index last = last_recorded_step(metrics).value_or(0);
  std::string lines;
  for (const StepLoss& step : latest) {
    if (step.step > last) {
      lines += metrics_line(StepRecord{
                   .step = step.step, .loss = step.loss, .learning_rate = step.learning_rate}) +
               "\n";
    }
  }
  if (!lines.empty() && ends_inside_line(metrics)) {
    lines.insert(0, "\n");
  }
  const Descriptor file =
      lines.empty() ? Descriptor() : open_without_links(metrics, O_WRONLY | O_APPEND);
  if (file.is_open()) {
    (void)write_all(file.number(), std::as_bytes(std::span(lines)));
  }
}

}  // namespace

TrainingState begin_training(const TrainingRequest& request,
                             const RunEnvironment& environment,
                             TrainingState begun,
                             Trainer& trainer,
                             const std::optional<Index>& kept_step,
                             const Communicator& communicator,
                             const SessionObserver& observer) {
  const partitioner::Network& network = trainer.execution().network();
  const TrainerOptions& options = trainer.options();
  take_weights(request, begun.frozen, network, trainer, communicator, observer);
  if (environment.started_again) {
    if (const auto kept = restore_kept_state(environment.state_folder,
                                             network,
                                             trainer.execution().plan(),
                                             trainer,
                                             communicator,
                                             kept_step)) {
      begun.step = kept->step;
      begun.images_seen = kept->images_seen;
      if (communicator.rank() == 0) {
        add_lost_lines(std::filesystem::path(request.run) / run_file::kMetrics, kept->latest);
      }
      if (!kept->rank_states && !trainer.own_arrays().empty()) {
        observer.warn(
            "what each rank had of its own, such as what compressed messages had left out, is of "
            "another partition and is dropped: all ranks start from the weights that they had in "
            "common",
            communicator);
      }
      return begun;
    }
  }
  if (request.resume.empty()) {
    return begun;
  }
  const TrainingState state = load_checkpoint(request.resume,
                                              network,
                                              trainer.execution().parameters(),
                                              trainer.optimizer(),
                                              trainer.rank_state(),
                                              communicator);
  if (state.seed != options.seed) {
    observer.warn(
        fmt::format("the checkpoint was trained with --seed {}, this run has --seed {}: pictures "
                    "are shuffled differently",
                    state.seed,
                    options.seed),
        communicator);
  }
  if (state.rank_states == TrainingState::RankStates::OfAnotherPlan) {
    observer.warn(
        fmt::format("{}: what each of its ranks had of its own, such as what compressed messages "
                    "had left out, is of another partition and is dropped: all ranks start from "
                    "the weights that they had in common",
                    request.resume),
        communicator);
  }
  trainer.resume_at(
      state.step, state.rank_states == TrainingState::RankStates::Restored, state.latest_losses);
  begun.step = state.step;
  begun.images_seen =
      state.images_seen > 0 ? state.images_seen : state.step * options.training.batch;
  return begun;
}

}  // namespace tessera::engine
