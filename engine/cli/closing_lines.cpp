#include "engine/cli/closing_lines.h"

#include <filesystem>
#include <fmt/format.h>

#include "engine/cli/own_data.h"
#include "engine/files/run_files.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

std::string closing_lines(const TrainCommand& command,
                          const std::optional<BestSoFar>& best,
                          Index step,
                          Index since_best) {
  const std::filesystem::path folder = command.run;
  const std::string last_file = (folder / run_file::kCheckpoint).string();
  const std::string best_file = (folder / run_file::kBest).string();
  const std::string where = best ? fmt::format("{} (test {} at step {}); after the last step: {}",
                                               best_file,
                                               described(best->tested.score),
                                               best->step,
                                               last_file)
                                 : fmt::format("{} (step {})", last_file, step);
  const std::string how = fmt::format(
      "tessera predict {0} PICTURES --weights {1}, or test them: "
      "tessera eval {0} --data {2} --weights {1}",
      command.model,
      best ? best_file : last_file,
      command.data_map.empty() ? command.data : path_of_rank(command.data, 0));
  const std::string end =
      command.patience > 0 && since_best >= command.patience
          ? fmt::format("ended after step {}: the last {} without a better accuracy (--patience)\n",
                        step,
                        counted(since_best, "test"))
          : "";
  return end + "trained weights: " + printable(where) + "\ntry them: " + printable(how) + "\n";
}

}  // namespace tessera::engine
