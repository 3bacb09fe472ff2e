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
#include "partitioner/partition/partition.h"
#ifdef TESSERA_HAS_ONNX
#include "engine/onnx/import.h"
#endif

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

#ifdef TESSERA_HAS_ONNX
void import_model(const ConvertCommand& command) {
  if (!command.out.ends_with(".cfg")) {
    throw InputError(command.out, 0, "expected a name ending in .cfg: a model file");
  }
  partitioner::InputSize size;
  if (!command.size.empty()) {
    const auto [rows, cols] = partitioner::parse_grid(command.size, "--size", partitioner::kPixels);
    size = {rows, cols};
  }
  for (const std::string& sentence :
       import_onnx({.from = command.model, .cfg = command.out, .size = size})) {
    print_warning(fmt::format("{}: {}", command.model, sentence));
  }
}

void import_weights(const ConvertCommand& command) {
  if (!command.to.ends_with(".safetensors")) {
    throw InputError(command.to, 0, "expected a name ending in .safetensors");
  }
  const partitioner::ModelFile model =
      load_model(command.for_model, Communicator::self(), printed_messages());
  for (const std::string& sentence : import_onnx_weights(command.model, model, command.to)) {
    print_warning(fmt::format("{}: {}", command.model, sentence));
  }
}
#else
void import_model(const ConvertCommand& command) {
  throw InputError(command.model,
                   0,
                   "this program was built without ONNX: build it where libonnx-dev and "
                   "libprotobuf-dev are installed");
}

void import_weights(const ConvertCommand& command) {
  import_model(command);
}
#endif

void convert_weights(const ConvertCommand& command) {
  if (command.from.empty() || command.to.empty()) {
    throw InputError(
        command.model,
        0,
        "expected --from FILE and --to FILE with a model file, --out FILE with an ONNX "
        "file");
  }
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
  partitioner::TrainingOptions training = model.training;
  training.ema_decay = 0;  // what was read are averages, where there are any
  const Optimizer<float> fresh(training, parameters, 0);
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

}  // namespace

void run_convert(const ConvertCommand& command) {
  if (!command.out.empty()) {
    import_model(command);
  } else if (!command.for_model.empty()) {
    import_weights(command);
  } else {
    convert_weights(command);
  }
}

}  // namespace tessera::engine
