// `tessera run`.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include "engine/cli/command_line.h"
#include "engine/cli/command_table.h"
#include "engine/cli/commands.h"
#include "engine/cli/version.h"
#include "engine/processes/launcher.h"
#include "engine/session/rebalancer.h"
#include "engine/supervisor/boot_unit.h"
#include "engine/supervisor/supervisor.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

namespace {

// What ranks would say of their command line, before there are any.
TrainingRequest checked_training(const std::vector<std::string>& words) {
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
  if (!line.answer.empty() || commands.of<ChooseCommand>().dry_run) {
    throw InputError(fmt::format("that trains nothing: leave out `tessera run`"));
  }
  TrainingRequest training = words[0] == "train" ? commands.of<TrainCommand>().request
                                                 : commands.of<ChooseCommand>().train.request;
  if (!training.data_map.empty()) {
    throw InputError(
        "a run whose devices have data of their own cannot go on without one of them: leave out "
        "`tessera run`, or --data-map");
  }
  if (training.run.empty()) {
    throw InputError("expected --run DIR: what is kept there is what the run goes on from");
  }
  return training;
}

// Whether devices that change their speed are to lead to another partition. On one machine they
// share their processors, and a slow rank has hardly more than bad luck.
bool is_to_rebalance(const RunCommand& command, const SupervisorRecord& record) {
  const TrainingRequest& training = record.request;
  if (command.keeps_partition || record.hosts.size() < 2 || training.rebalance_window_s) {
    return false;
  }
  try {
    return should_rebalance(training,
                            partitioner::read_model(training.model).augmentation.random != 0);
  } catch (const InputError&) {  // ranks say what is wrong with it
    return false;
  }
}

std::string name_of_user() {
  const uid_t number = ::geteuid();
  const passwd* const entry = ::getpwuid(number);  // NOLINT(concurrency-mt-unsafe): one thread
  return entry == nullptr ? fmt::format("{}", number) : std::string(entry->pw_name);
}

// Whether a run was begun is found out at each boot.
std::string unit_of(const RunCommand& command, const SupervisorRecord& record) {
  BootUnit unit{.program = program_path(), .folder = record.folder, .user = name_of_user()};
  std::vector<std::string>& words = unit.words;
  words.emplace_back("run");
  if (!command.hostfile.empty()) {
    words.insert(words.end(), {"--hostfile", std::filesystem::absolute(command.hostfile).string()});
  }
  if (command.ranks > 0) {
    words.insert(words.end(), {"-n", fmt::format("{}", command.ranks)});
  }
  if (command.keeps_partition) {
    words.emplace_back("--keep-partition");
  }
  if (!command.witness.empty()) {
    words.insert(words.end(), {"--witness", command.witness});
  }
  if (command.silence_s > 0) {
    words.insert(words.end(), {"--silence", fmt::format("{}", command.silence_s)});
  }
  if (!command.goes_on.empty()) {
    words.insert(words.end(), {"--continue", record.run_folder});
    return boot_unit_text(unit);
  }
  words.insert(words.end(), {"--remote-shell", command.remote_shell, "--or-continue", "--"});
  words.insert(words.end(), command.words.begin(), command.words.end());
  return boot_unit_text(unit);
}

// The folder of a run that the command would begin, where that has begun already; else empty.
std::string begun_run(const RunCommand& command) {
  if (!command.or_continue) {
    return "";
  }
  const std::string run = checked_training(command.words).run;
  return std::filesystem::exists(std::filesystem::path(run) / kRecordName) ? run : "";
}

}  // namespace

int run_run(const RunCommand& command) {
  SupervisorRequest request;
  SupervisorRecord& record = request.record;
  const std::string goes_on = command.goes_on.empty() ? begun_run(command) : command.goes_on;
  const bool later = !goes_on.empty() || !command.take_over.empty();
  if (later) {
    if (!command.words.empty() && !command.or_continue) {
      throw InputError("--continue knows the command of its run: leave out what follows");
    }
    const std::filesystem::path file = !command.take_over.empty()
                                           ? std::filesystem::path(command.take_over)
                                           : std::filesystem::path(goes_on) / kRecordName;
    record = read_supervisor_record(file);
    request.goes_on = true;
    request.takes_over = !command.take_over.empty();
    std::error_code error;
    std::filesystem::current_path(record.folder, error);
    if (error) {
      throw InputError(fmt::format("{}: cannot be entered: {}", record.folder, error.message()));
    }
  } else {
    record.words = command.words;
    record.typed = words_of_process(::getpid());
    record.folder = std::filesystem::current_path().string();
    record.remote_shell = command.remote_shell;
  }
  if (!command.hostfile.empty()) {
    record.hosts = read_host_file(command.hostfile);
  } else if (command.ranks > 0) {
    record.hosts = {{"localhost", static_cast<int>(command.ranks)}};
  } else if (record.hosts.empty()) {
    throw InputError("expected --hostfile FILE, -n N or --continue DIR (see tessera run --help)");
  }
  if (!command.witness.empty()) {
    if (!is_host_name(command.witness)) {
      throw InputError(fmt::format("--witness: expected an address or a host name, not \"{}\"",
                                   printable(command.witness)));
    }
    record.witness = command.witness;
  }
  request.alone = command.alone;
  if (record.request.model.empty()) {
    record.request = checked_training(record.words);
  }
  if (!later && is_to_rebalance(command, record)) {
    record.request.rebalance_window_s = kUsualRebalanceWindow_s;
  }
  record.run_folder = std::filesystem::absolute(record.request.run).string();
  if (command.at_boot) {
    fmt::print("{}", unit_of(command, record));
    return 0;
  }
  request.agents = {program_path(), record.remote_shell};
  request.version = program_sources();
  request.silence_s = static_cast<double>(command.silence_s);
  request.say = [](const std::string& line) { fmt::print(stderr, "tessera: {}\n", line); };
  return run_supervised(request);
}

}  // namespace tessera::engine
