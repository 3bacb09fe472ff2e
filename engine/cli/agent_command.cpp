#include "engine/cli/agent_command.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "engine/cli/version.h"
#include "engine/cluster/examiner.h"
#include "engine/files/atomic_file.h"
#include "engine/session/spare_partition.h"
#include "engine/supervisor/agent.h"
#include "engine/system/exit_code.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

// A partition for ranks on these devices, [rank], into a file.
void write_spare_partition(const std::string& request,
                           const std::string& out,
                           const std::vector<std::string>& devices) {
  write_atomically(out, to_text(spare_partition(read_training_request(request), devices)));
}

}  // namespace

bool is_agent(int argc, char** argv) {
  return argc > 1 && std::string(argv[1]) == "agent";
}

int run_agent_command(int argc, char** argv) {
  AgentOptions options{.version = program_sources(), .output = -1};
  const bool speaks = ::isatty(STDIN_FILENO) == 0;
  const bool examines = argc == 3 && std::string(argv[2]) == "--examine";
  const bool searches = argc > 5 && std::string(argv[2]) == "--spare";
  if (argc == 4 && std::string(argv[2]) == "--output") {
    options.output = std::atoi(argv[3]);
  } else if (!searches && ((argc != 2 && !examines) || !speaks)) {
    fmt::print(stderr, "tessera: an agent is started by `tessera run`: see tessera help run\n");
    return kInputError;
  }
  try {
    if (searches) {
      write_spare_partition(argv[3], argv[4], {argv + 5, argv + argc});
      return 0;
    }
    if (examines) {
      run_examiner(options.version);
      return 0;
    }
    return run_agent(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tessera: {}\n", printable(error.what()));
    return kInputError;
  }
}

}  // namespace tessera::engine
