#include "engine/train/evaluation.h"

#include <cmath>
#include <span>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/system/stop_request.h"
#include "engine/train/pass_end.h"

namespace tessera::engine {

EvaluationResult evaluate(Execution<float>& execution, DataLoader& loader) {
  const OrderlyStop orderly;
  EvaluationResult result;
  result.pictures = loader.size();
  const Index batch = execution.plan().batch;
  const int last = execution.network().size() - 1;
  const auto outputs = static_cast<std::size_t>(execution.network().shape(last).volume());
  result.classes = ClassificationMetrics(static_cast<int>(outputs));
  double loss = 0;
  Pass pass;
  pass.training = false;
  for (Index step = 0; step * batch < result.pictures; ++step) {
    const std::optional<std::string> problem = loader.load(step, execution);
    pass.targets = &loader.targets();
    execution.forward(pass);
    const PassOutcome outcome = exchange_loss(execution, pass, problem);
    loss += outcome.loss;
    if (outcome.stop_signal != 0) {
      throw Stopped(outcome.stop_signal);
    }
    const std::vector<float> output = execution.gather_map(last);
    for (std::size_t n = 0; n < loader.targets().size() && !output.empty(); ++n) {
      const std::optional<ImageTargets>& of = loader.targets()[n];
      if (of && of->label) {
        result.classes.add(std::span(output).subspan(n * outputs, outputs), *of->label);
      }
    }
  }
  if (std::isnan(loss)) {
    throw AgreedError("the loss is NaN: are some weights NaN?");
  }
  const double pictures = static_cast<double>(result.pictures);
  result.loss = loss / pictures;
  const auto right = static_cast<double>(result.classes.right());  // 0 but on rank 0
  result.accuracy = sum_over_ranks(execution.communicator(), right) / pictures;
  return result;
}

}  // namespace tessera::engine
