#include "engine/session/spare_partition.h"

#include "engine/session/multi_scale.h"
#include "engine/session/planning.h"
#include "engine/session/training_length.h"
#include "engine/session/training_start.h"
#include "engine/train/optimizer.h"

namespace tessera::engine {

partitioner::Partition spare_partition(const TrainingRequest& asked,
                                       const std::vector<std::string>& devices) {
  const Communicator self = Communicator::self();
  const TrainingRequest request = request_from_start(asked, {}, self, {});
  const partitioner::ModelFile model = model_to_train(request, self, {});
  const std::optional<TrainingRecord> before = record_to_resume(request, model.network, self);
  const partitioner::TrainingOptions training = training_options(request, model, before);
  const auto scale = request.multi_scale || !before ? request.multi_scale : before->multi_scale;
  const auto sizes = input_sizes(model, model.network, scale, request.model);
  return search_automatically(
      sizes ? with_input(model.network, sizes->largest()) : model.network,
      described_cluster(request.partition, static_cast<int>(devices.size()), {}),
      request.partition,
      {.model = request.model,
       .batch = training.batch / training.subdivisions,
       .passes = training.subdivisions,
       .trained = trained_arrays(training),
       .kept = {.is_on = true, .devices = devices}});
}

}  // namespace tessera::engine
