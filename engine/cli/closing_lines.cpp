#include "engine/cli/closing_lines.h"

#include <filesystem>
#include <fmt/format.h>

#include "partitioner/base/printable.h"

namespace tessera::engine {

std::string closing_lines(const TrainCommand& command,
                          const std::optional<BestSoFar>& best,
                          Index step) {
  const std::filesystem::path folder = command.run;
  const std::string last_file = (folder / "checkpoint.safetensors").string();
  const std::string best_file = (folder / "best.safetensors").string();
  const std::string where =
      best ? fmt::format("{} (test accuracy {:.2f} % at step {}); after the last step: {}",
                         best_file,
                         100 * best->tested.accuracy,
                         best->step,
                         last_file)
           : fmt::format("{} (step {})", last_file, step);
  const std::string how = fmt::format(
      "tessera predict {0} PICTURES --weights {1}, or test them: "
      "tessera eval {0} --data {2} --weights {1}",
      command.model,
      best ? best_file : last_file,
      command.data);
  return "trained weights: " + partitioner::printable(where) +
         "\ntry them: " + partitioner::printable(how) + "\n";
}

}  // namespace tessera::engine
