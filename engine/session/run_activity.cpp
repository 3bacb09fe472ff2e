#include "engine/session/run_activity.h"

#include <algorithm>

#include "engine/train/optimizer.h"
#include "partitioner/plan/kept_parts.h"

namespace tessera::engine {

namespace {

// What may have to reach the disk before a checkpoint is written: the one before it, the best
// weights, and itself.
Index saved_bytes(const partitioner::Plan& plan, const partitioner::TrainedArrays& trained) {
  constexpr Index kFiles = 3;
  Index elements = 0;
  for (const partitioner::ArrayName& array : arrays_of(plan, trained)) {
    const auto& shape = plan.parameters[static_cast<std::size_t>(array.tensor)].shape;
    elements += shape.channels * shape.row;
  }
  return kFiles * elements * static_cast<Index>(sizeof(float));
}

}  // namespace

TrainingObserver activity_begins(const TellActivity& tell,
                                 const partitioner::Plan& plan,
                                 const partitioner::TrainingOptions& training) {
  if (!tell) {
    return {};
  }
  const auto save = [&tell, bytes = saved_bytes(plan, trained_arrays(training))](Index /*step*/) {
    tell({.kind = RunActivity::Kind::Saving, .bytes = bytes});
  };
  const auto test = [&tell, batch = std::max<Index>(training.batch, 1)](Index pictures) {
    tell({.kind = RunActivity::Kind::Test, .steps = (pictures + batch - 1) / batch});
  };
  return {.checkpoint = save,
          .evaluation_begins = test,
          .evaluation = [save](Index step,
                               double /*epoch*/,
                               const EvaluationResult& /*result*/) { save(step); },
          .end = save,
          .stopped = save,
          .failure = save};
}

TrainingObserver activity_ends(const TellActivity& tell) {
  if (!tell) {
    return {};
  }
  return {.checkpoint = [&tell](Index /*step*/) { tell({}); },
          .evaluation = [&tell](Index /*step*/,
                                double /*epoch*/,
                                const EvaluationResult& /*result*/) { tell({}); }};
}

}  // namespace tessera::engine
