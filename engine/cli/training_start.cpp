#include "engine/cli/training_start.h"

#include <fmt/format.h>
#include <string>

#include "engine/cli/setup.h"
#include "engine/comm/agreement.h"
#include "engine/train/checkpoint.h"

namespace tessera::engine {

namespace {

void refuse_to_resume(const TrainCommand& command,
                      const std::optional<std::string>& difference,
                      const char* remedy) {
  if (difference) {
    throw AgreedError(
        fmt::format("{}: {}: {}, or start over from its weights with --weights instead of --resume",
                    command.resume,
                    *difference,
                    remedy));
  }
}

}  // namespace

namespace {

// "layers 0 to 3 frozen"
std::string frozen_text(int last) {
  return last < 0    ? "no layer frozen"
         : last == 0 ? "layer 0 frozen"
                     : fmt::format("layers 0 to {} frozen", last);
}

}  // namespace

partitioner::ModelFile model_to_train(const TrainCommand& command,
                                      const Communicator& communicator) {
  partitioner::ModelFile model = load_model(command.model, communicator);
  model.network = agreed(communicator, [&] { return frozen(model.network, command.freeze); });
  if (command.resume.empty()) {
    return model;
  }
  const int now = last_frozen(model.network);
  const int before = checkpoint_last_frozen(command.resume, communicator);
  if (before == now || before >= model.network.size()) {  // another network, which is said later
    return model;
  }
  const std::string difference =
      fmt::format("was trained with {}, {} with {}",
                  frozen_text(before),
                  command.freeze.empty() ? command.model + " is" : "--freeze " + command.freeze,
                  frozen_text(now));
  if (!command.freeze.empty()) {
    refuse_to_resume(command, difference, "leave out --freeze");
  }
  warn(fmt::format("{} {}: it goes on with {}", command.resume, difference, frozen_text(before)),
       communicator);
  throw_agreed(communicator, problem_of([&] {
                 model.network =
                     frozen(model.network, before < 0 ? "none" : std::to_string(before));
               }));
  return model;
}

std::optional<Preparation> preparation_before(const TrainCommand& command,
                                              const Communicator& communicator) {
  const std::string& file = command.resume.empty() ? command.weights : command.resume;
  return file.empty() ? std::nullopt : stored_preparation(file, communicator);
}

RenderingRules training_rules(const TrainCommand& command,
                              const std::optional<Preparation>& before,
                              const partitioner::ModelFile& model,
                              const Communicator& communicator) {
  const PixelConvention given{command.mean, command.stddev};
  if (command.resume.empty()) {
    return rules_for_weights(command.weights, before, model, given, communicator);
  }
  RenderingRules rules = rendering_rules(model, convention_in_effect(given, before));
  if (before) {
    refuse_to_resume(command,
                     pixel_difference(*before, preparation_of(rules, {})),
                     "leave out --mean and --std and give the model that it was trained with");
  }
  return rules;
}

void compare_classes(const TrainCommand& command,
                     const std::optional<Preparation>& before,
                     const Preparation& now,
                     const Communicator& communicator) {
  const auto difference = before ? class_difference(*before, now) : std::nullopt;
  if (!command.resume.empty()) {
    refuse_to_resume(command, difference, "give the data set that it was trained on");
  } else if (difference) {
    warn(fmt::format("{} {}: training continues with the classes of {}",
                     command.weights,
                     *difference,
                     command.data),
         communicator);
  }
}

}  // namespace tessera::engine
