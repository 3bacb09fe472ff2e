// `tessera deploy`.

#include <cstdio>
#include <filesystem>
#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/cli/version.h"
#include "engine/cluster/deployment.h"
#include "engine/processes/child_process.h"
#include "engine/session/own_data.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

// Files that name others mean nothing without them.
void expect_folder(const std::string& data) {
  if (path_of_rank(data, 0) == data && is_file(data)) {
    throw InputError(data,
                     0,
                     "is a file that names others: give the folders that it and its pictures are "
                     "in as PATH instead of --data");
  }
}

}  // namespace

bool run_deploy(const DeployCommand& command) {
  expect_folder(command.data);
  Deployment deployment{.cluster = {.program = program_path(),
                                    .version = program_sources(),
                                    .folder = std::filesystem::current_path().string(),
                                    .remote_shell = command.remote_shell,
                                    .hosts = read_host_file(command.hostfile),
                                    .measures_links = false},
                        .paths = {command.paths.begin(), command.paths.end()},
                        .data = {.path = command.data},
                        .dry_run = command.dry_run,
                        .overwrite = command.overwrite,
                        .say = [](const std::string& line) {
                          fmt::print("{}\n", printable(line));
                          std::fflush(stdout);
                        }};
  if (!command.data_map.empty()) {
    deployment.data.map =
        partitioner::parse_data_map(partitioner::read_data_map(command.data_map), command.data_map);
  }
  const std::vector<Finding> findings = deploy(deployment);
  print_findings(findings);
  if (!findings.empty()) {
    fmt::print("\n{}\n", counted(static_cast<Index>(findings.size()), "problem"));
  } else if (!command.dry_run) {
    fmt::print("all devices have what they need; next: tessera doctor --hostfile {}\n",
               shell_word(printable(command.hostfile)));
  }
  return findings.empty();
}

}  // namespace tessera::engine
