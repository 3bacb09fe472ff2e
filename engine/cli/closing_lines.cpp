#include "engine/cli/closing_lines.h"

#include <filesystem>
#include <fmt/format.h>

#include "engine/cli/resume_command.h"
#include "engine/files/run_files.h"
#include "engine/session/own_data.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

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
  const Words started = started_command().program;
  const std::string how = fmt::format(
      "{0} predict {1} PICTURES --weights {2}, or test them: "
      "{0} eval {1} --data {3}{4}{5} --weights {2}",
      shell_word(started.empty() ? "tessera" : started.front()),
      shell_word(request.model),
      shell_word(best ? best_file : last_file),
      shell_word(request.data_map.empty() ? request.data : path_of_rank(request.data, 0)),
      request.skip_broken ? " --skip-broken" : "",
      request.allow_unlabelled ? " --allow-unlabelled" : "");
  const std::string end =
      request.patience > 0 && result.tests_since_best >= request.patience
          ? fmt::format("ended after step {}: the last {} without a better accuracy (--patience)\n",
                        result.step,
                        counted(result.tests_since_best, "test"))
          : "";
  return end + "trained weights: " + printable(where) + "\ntry them: " + printable(how) + "\n";
}

}  // namespace tessera::engine
