#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/session/model_setup.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/checkpoints/weights_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// Darknet's format has no place for it.
void warn_of_lost_preparation(const ConvertCommand& command,
                              const std::optional<Preparation>& preparation) {
  if (!preparation) {
    return;
  }
  const std::string names = preparation->class_names.empty() ? "" : " and the class names";
  print_warning(
      fmt::format("{} cannot hold how pictures are prepared{}: give --mean {:g} --std {:g}{} with "
                  "it, as {} says",
                  command.to,
                  names,
                  fmt::join(preparation->mean, ","),
                  fmt::join(preparation->stddev, ","),
                  names.empty() ? "" : " and --names",
                  command.from));
}

}  // namespace

void run_convert(const ConvertCommand& command) {
  const Communicator alone = Communicator::self();
  const partitioner::ModelFile model = load_model(command.model, alone, printed_messages());
  const partitioner::Partition partition = partitioner::single_tile(model.network);
  const partitioner::Plan plan = make_plan(model.network, partition, 1);
  ParameterSet<float> parameters(model.network, plan, alone, true);
  const partitioner::NormRule& norm = model.training.norm;
  const bool to_safetensors = command.to.ends_with(".safetensors");
  if (command.layers > model.network.size()) {
    throw InputError(fmt::format(
        "--layers {}: {} has {} layers", command.layers, command.model, model.network.size()));
  }
  if (command.layers > 0 && to_safetensors) {
    throw InputError(command.to,
                     0,
                     "--layers is for Darknet's format: give a name that does not end in "
                     ".safetensors, such as NAME.conv.N");
  }
  if (command.layers == 0 && !to_safetensors && !command.to.ends_with(".weights")) {
    throw InputError(command.to, 0, "expected a name ending in .weights or .safetensors");
  }
  load_weights(command.from, model.network, norm, parameters, alone);
  const Index seen = images_seen(command.from);
  const std::optional<Preparation> preparation = stored_preparation(command.from, alone);
  if (!to_safetensors) {
    // As `darknet partial` does, a file of first layers counts from the first image on.
    save_darknet_weights(command.to,
                         model.network,
                         norm,
                         command.layers > 0 ? 0 : seen,
                         parameters,
                         alone,
                         command.layers > 0 ? command.layers : model.network.size());
    warn_of_lost_preparation(command, preparation);
    return;
  }
  const Optimizer<float> fresh(model.training, parameters, 0);
  save_checkpoint(command.to,
                  {.step = 0,
                   .seed = 1,
                   .model = model.text,
                   .fingerprint = fingerprint(model.network),
                   .images_seen = seen,
                   .preparation = preparation},
                  parameters,
                  fresh,
                  {},
                  alone);
}

}  // namespace tessera::engine
