#include <algorithm>

#include "engine/cli/commands.h"
#include "engine/cli/setup.h"
#include "engine/train/checkpoint.h"
#include "partitioner/errors.h"

namespace engine {

void run_convert(const ConvertCommand& command) {
  const Communicator alone = Communicator::self();
  const partitioner::ModelFile model = load_model(command.model, alone);
  const partitioner::Partition partition = partitioner::single_tile(model.network);
  const partitioner::Plan plan = make_plan(model.network, partition, 1);
  ParameterSet<float> parameters(model.network, plan, alone, true);
  const double epsilon = model.training.batch_norm_epsilon;
  load_weights(command.from, model.network, epsilon, parameters, alone);
  if (command.to.ends_with(".weights")) {
    save_darknet_weights(command.to, model.network, epsilon, 0, parameters, alone);
    return;
  }
  if (!command.to.ends_with(".safetensors")) {
    throw partitioner::InputError(
        command.to, 0, "give a name that ends with .weights or .safetensors");
  }
  const Optimizer<float> fresh(model.training, parameters, 0);
  save_checkpoint(
      command.to, {0, 1, model.text, fingerprint(model.network)}, parameters, fresh, alone);
}

}  // namespace engine
