#include "engine/train/checkpoints/inference.h"

#include <fmt/format.h>
#include <utility>

#include "engine/train/checkpoints/weights_file.h"

namespace tessera::engine {

Inference::Inference(partitioner::ModelFile model,
                     const std::string& model_path,
                     const std::string& weights,
                     const partitioner::Partition& partition,
                     Index batch,
                     const Communicator& communicator)
    : communicator_(communicator),
      model_path_(model_path),
      weights_(weights),
      model_(std::move(model)),
      plan_(make_plan(model_.network, partition, batch)),
      execution_(
          model_.network, plan_, communicator, {.training = false, .norm = model_.training.norm}),
      stored_(stored_preparation(weights, communicator)) {
  load_weights(
      weights, model_.network, model_.training.norm, execution_.parameters(), communicator);
}

Outputs Inference::outputs(DataLoader& loader, Index step) {
  throw_agreed(communicator_, loader.load(step, execution_));
  Pass pass;
  pass.training = false;
  execution_.forward(pass);
  Outputs outputs;
  for (const int layer : output_layers(model_.network)) {
    outputs.push_back(execution_.gather_map(layer));
  }
  return outputs;
}

void Inference::expect_its_classes(const DataLoader& loader, const std::string& data) const {
  const Preparation now = preparation_of(rendering_rules(model_), loader.class_names());
  if (const auto difference = stored_ ? class_difference(*stored_, now) : std::nullopt) {
    throw AgreedError(
        fmt::format("{}: {} {}: give the data set that it was trained on, or one "
                    "with the same classes in the same order",
                    data,
                    weights_,
                    *difference));
  }
}

}  // namespace tessera::engine
