#include "engine/train/evaluation.h"

#include <cmath>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/system/stop_request.h"
#include "engine/train/pass_end.h"

namespace tessera::engine {

EvaluationResult evaluate(Execution<float>& execution,
                          DataLoader& loader,
                          Metric& metric,
                          TrunkCache* trunk) {
  const OrderlyStop orderly;
  metric.clear();
  EvaluationResult result{.pictures = loader.size(), .metric = &metric};
  const Index passes = loader.passes();
  const std::vector<int> judged = output_layers(execution.network());
  double loss = 0;
  LossSum by_objects;
  Pass pass;
  pass.training = false;
  for (Index step = 0; step < passes; ++step) {
    const std::optional<std::string> problem = load_pass(trunk, loader, execution, step);
    pass.targets = &loader.targets();
    forward(trunk, execution, pass);
    const PassOutcome outcome = exchange_loss(execution, pass, problem);
    if (trunk != nullptr) {
      trunk->confirm();
    }
    loss += outcome.loss.total();
    by_objects.add({.by_objects = outcome.loss.by_objects});
    if (outcome.stop_signal != 0) {
      throw Stopped(outcome.stop_signal);
    }
    Outputs outputs;
    for (const int layer : judged) {
      outputs.push_back(execution.gather_map(layer));
    }
    if (execution.communicator().rank() == 0) {
      metric.accumulate(outputs, loader.targets());
    }
  }
  if (std::isnan(loss + by_objects.object_mean())) {
    throw AgreedError("the loss is NaN: are some weights NaN?");
  }
  result.loss = loss / static_cast<double>(result.pictures) + by_objects.object_mean();
  result.values = metric.result();
  for (MetricValue& value : result.values) {
    value.value = execution.communicator().share(value.value);
  }
  return result;
}

}  // namespace tessera::engine
