// `tessera run`.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>

#include "engine/cli/command_line.h"
#include "engine/cli/commands.h"
#include "engine/cli/options.h"
#include "engine/cli/version.h"
#include "engine/supervisor/supervisor.h"
#include "engine/supervisor/training_words.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// What ranks would say of their command line, before there are any. Returns the run's folder.
std::string checked_run_folder(const std::vector<std::string>& words) {
  if (words.empty() || (words[0] != "train" && words[0] != "choose")) {
    throw InputError(
        "expected train or choose and its options after --, as in: tessera run -n 2 -- train ... "
        "(see tessera run --help)");
  }
  CLI::App program("", "tessera");
  program.require_subcommand(1);
  Commands commands;
  add_commands(program, commands);
  const HelpPages help(program);
  std::vector<std::string> all{"tessera"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) {
    pointers.push_back(word.data());
  }
  const CommandLine line =
      read_command_line(program, help, static_cast<int>(pointers.size()), pointers.data());
  if (!line.problem.empty()) {
    throw InputError(line.problem);
  }
  if (!line.answer.empty() || commands.choose.dry_run) {
    throw InputError(fmt::format("that trains nothing: leave out `tessera run`"));
  }
  if (!value_of(words, "--data-map").empty()) {
    throw InputError(
        "a run whose devices have data of their own cannot go on without one of them: leave out "
        "`tessera run`, or --data-map");
  }
  const std::string run =
      words[0] == "train" ? commands.train.request.run : commands.choose.train.request.run;
  if (run.empty()) {
    throw InputError("expected --run DIR: what is kept there is what the run goes on from");
  }
  return run;
}

}  // namespace

int run_run(const RunCommand& command) {
  SupervisorRequest request;
  request.words = command.words;
  request.agents.remote_shell = command.remote_shell;
  if (!command.goes_on.empty()) {
    if (!command.words.empty()) {
      throw InputError("--continue knows the command of its run: leave out what follows");
    }
    const SupervisorRecord record = read_supervisor_record(command.goes_on);
    std::error_code error;
    std::filesystem::current_path(record.folder, error);
    if (error) {
      throw InputError(fmt::format("{}: cannot be entered: {}", record.folder, error.message()));
    }
    request.words = record.words;
    request.hosts = record.hosts;
    request.run_number = record.run_number;
    request.goes_on = true;
    request.agents.remote_shell = record.remote_shell;
  }
  if (!command.hostfile.empty()) {
    request.hosts = read_host_file(command.hostfile);
  } else if (command.ranks > 0) {
    request.hosts = {{"localhost", static_cast<int>(command.ranks)}};
  } else if (request.hosts.empty()) {
    throw InputError("expected --hostfile FILE, -n N or --continue DIR (see tessera run --help)");
  }
  request.run_folder = checked_run_folder(request.words);
  request.agents.program = std::filesystem::read_symlink("/proc/self/exe").string();
  request.version = program_sources();
  request.silence_s = static_cast<double>(command.silence_s);
  request.say = [](const std::string& line) { fmt::print(stderr, "tessera: {}\n", line); };
  return run_supervised(request);
}

}  // namespace tessera::engine
