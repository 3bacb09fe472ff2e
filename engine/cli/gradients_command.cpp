#include <utility>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/comm/agreement.h"
#include "engine/files/safetensors.h"
#include "engine/files/tensor_check.h"
#include "engine/session/model_setup.h"
#include "engine/session/planning.h"
#include "engine/train/verifying/vector_jacobian.h"

namespace tessera::engine {

namespace {

NamedTensors read_tensors(const std::string& path) {
  const SafetensorsReader file(path);
  expect_sound_tensors(file, [](const std::string& /*name*/) { return Numbers::Any; });
  NamedTensors tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    tensors[tensor.name] = {tensor.shape, file.read_all<double>(tensor.name)};
  }
  return tensors;
}

void write_tensors(const std::string& path, const NamedTensors& tensors, ElementType type) {
  std::vector<StoredTensor> stored;
  for (const auto& [name, tensor] : tensors) {
    stored.push_back({name, tensor.shape, type});
  }
  SafetensorsWriter file(path, stored, {}, Links::Follow);
  for (const auto& [name, tensor] : tensors) {
    file.write(std::span<const double>(tensor.values));
  }
  file.commit();
}

}  // namespace

void run_gradients(const GradientsCommand& command, const Communicator& communicator) {
  const bool root = communicator.rank() == 0;
  const SessionObserver& messages = printed_messages();
  partitioner::ModelFile model = load_model(command.model, communicator, messages);
  model.network = agreed(communicator, [&] { return frozen(model.network, command.freeze); });
  const NamedTensors in =
      agreed(communicator, [&] { return root ? read_tensors(command.in) : NamedTensors{}; });
  PartitionRequest request = command.partition;
  if (!request.says_how_to_cut()) {
    request.cut.grid = {1, 1};
  }
  const auto input = in.find("input");
  const bool has_images =
      input != in.end() && !input->second.shape.empty() && input->second.shape[0] > 0;
  Index batch = has_images ? input->second.shape[0] : 1;
  batch = communicator.share(batch);
  const VectorJacobianOptions options{
      model.network,
      agreed_partition(
          model.network, request, {.model = command.model, .batch = batch}, communicator, messages),
      command.batch_norm.value_or(BatchNormMode::Sync),
      model.training.norm,
      command.in};
  expect_exact_gradients(options.partition, "gradients");
  warn_of_idle_ranks(options.partition, communicator, messages);
  const bool in_double = command.precision == "double";
  const NamedTensors out = in_double ? vector_jacobian_product<double>(options, in, communicator)
                                     : vector_jacobian_product<float>(options, in, communicator);
  throw_agreed(communicator, problem_of([&] {
                 if (root) {
                   write_tensors(command.out, out, in_double ? ElementType::F64 : ElementType::F32);
                 }
               }));
}

}  // namespace tessera::engine
