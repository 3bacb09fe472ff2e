#include "engine/cli/closing_lines.h"

#include <filesystem>
#include <fmt/format.h>
#include <system_error>

#include "engine/cli/started_command.h"
#include "engine/run_files/names.h"
#include "engine/session/own_data.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

// Commands that work as they are printed: what was not tested while training may lack pictures for
// testing, and rank 0 may have none of the data that lie on the ranks.
std::string uses_of(const TrainingRequest& request, const std::string& weights) {
  const std::string program = started_program();
  const std::string model = shell_word(request.model);
  const std::string data = request.data_map.empty() ? request.data : path_of_rank(request.data, 0);
  const std::string predict =
      fmt::format("{} predict {} PICTURES --weights {}", program, model, shell_word(weights));
  if (!request.evaluate || (!request.data_map.empty() && !is_there(data))) {
    return predict;
  }
  return fmt::format("{}, or test them: {} eval {} --data {}{}{} --weights {}",
                     predict,
                     program,
                     model,
                     shell_word(data),
                     request.skip_broken ? " --skip-broken" : "",
                     request.allow_unlabelled ? " --allow-unlabelled" : "",
                     shell_word(weights));
}

}  // namespace

std::string closing_lines(const TrainingRequest& request, const TrainingResult& result) {
  const auto& best = result.best;
  const std::filesystem::path folder = request.run;
  const std::string last_file = (folder / run_file::kCheckpoint).string();
  const std::string best_file = (folder / run_file::kBest).string();
  const std::string where = best ? fmt::format("{} (test {} at step {}); after the last step: {}",
                                               best_file,
                                               described(best->tested.score),
                                               best->step,
                                               last_file)
                                 : fmt::format("{} (step {})", last_file, result.step);
  const std::string end =
      request.patience > 0 && result.tests_since_best >= request.patience
          ? fmt::format("ended after step {}: the last {} without a better accuracy (--patience)\n",
                        result.step,
                        counted(result.tests_since_best, "test"))
          : "";
  const std::string weights = end + "trained weights: " + printable(where) + "\n";
  return result.risen_loss
             ? weights
             : weights + "try them: " + printable(uses_of(request, best ? best_file : last_file)) +
                   "\n";
}

}  // namespace tessera::engine
