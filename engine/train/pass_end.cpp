#include "engine/train/pass_end.h"

#include "engine/comm/agreement.h"
#include "engine/system/stop_request.h"

namespace tessera::engine {

PassOutcome exchange_loss(Execution<float>& execution,
                          const Pass& pass,
                          const std::optional<std::string>& images_problem) {
  std::optional<PassProblem> problem;
  if (images_problem) {
    problem = {PassProblem::Kind::Images, *images_problem};
  }
  PassOutcome outcome = execution.exchange_loss(pass, stop_signal(), problem);
  expect_no_problem(outcome);
  return outcome;
}

void expect_no_problem(const PassOutcome& outcome) {
  if (outcome.problem) {
    throw AgreedError(outcome.problem->text);
  }
}

double sum_over_ranks(const Communicator& communicator, double mine) {
  double sum = 0;
  for (const double theirs : communicator.of_ranks(mine)) {
    sum += theirs;
  }
  return sum;
}

}  // namespace tessera::engine
