#include "engine/cli/inference.h"

#include <fmt/format.h>
#include <utility>

#include "engine/cli/planning.h"
#include "engine/cli/setup.h"
#include "engine/train/weights_file.h"

namespace tessera::engine {

Inference::Inference(partitioner::ModelFile model,
                     const std::string& model_path,
                     const std::string& weights,
                     const PartitionChoice& choice,
                     Index batch,
                     const DataNeeds& needs,
                     const Communicator& communicator)
    : communicator_(communicator),
      model_path_(model_path),
      weights_(weights),
      model_(std::move(model)),
      partition_(agreed_partition(model_.network,
                                  choice,
                                  {.model = model_path,
                                   .batch = batch,
                                   .training = false,
                                   .decoding_bytes = needs.decoding_bytes,
                                   .data_bytes = needs.data_bytes},
                                  communicator)),
      plan_(make_plan(model_.network, partition_, batch)),
      execution_(model_.network,
                 plan_,
                 communicator,
                 {.training = false,
                  .batch_norm_rate = model_.training.batch_norm_rate,
                  .batch_norm_epsilon = model_.training.batch_norm_epsilon}) {
  warn_of_idle_ranks(partition_, communicator);
  stored_ = stored_preparation(weights, communicator);
  load_weights(weights,
               model_.network,
               model_.training.batch_norm_epsilon,
               execution_.parameters(),
               communicator);
}

RenderingRules Inference::rules(const PixelConvention& given) const {
  return rules_for_weights(weights_, stored_, model_, given, communicator_);
}

void Inference::expect_its_classes(const Feed& feed, const std::string& data) const {
  const Preparation now = preparation_of(rendering_rules(model_), feed.class_names());
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
