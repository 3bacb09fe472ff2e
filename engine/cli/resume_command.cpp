#include "engine/cli/resume_command.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <unistd.h>

#include "engine/cli/launcher.h"
#include "engine/supervisor/agent_line.h"
#include "engine/system/command_words.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

std::string command_line_of(const Words& words) {
  Words parts;
  for (const std::string& word : words) {
    parts.push_back(shell_word(word));
  }
  return printable(fmt::format("{}", fmt::join(parts, " ")));
}

// mpiexec cuts its own list of hosts, "pi1:2,pi2", into words as it reads it, and that is what is
// seen of it from then on.
Words with_hosts_joined(const Words& words) {
  Words joined;
  bool hosts = false;
  for (const std::string& word : words) {
    const bool first = !joined.empty() && (joined.back() == "-hosts" || joined.back() == "-host");
    hosts = first || (hosts && word.rfind('-', 0) != 0);
    if (hosts && !first) {
      const bool ranks = word.find_first_not_of("0123456789") == std::string::npos;
      joined.back() += (ranks ? ":" : ",") + word;
    } else {
      joined.push_back(word);
    }
  }
  return joined;
}

Words with_resume(const Words& program, LeftOut left_out, const std::string& checkpoint) {
  left_out.with_value.insert({"--resume", "--weights"});
  left_out.flags.insert("--force");
  Words words = without(program, left_out);
  words.insert(words.end(), {"--resume", checkpoint});
  return words;
}

// What says how to cut the network for certain devices, and which of them reads.
LeftOut cut_for_devices(const Words& words) {
  LeftOut cut;
  cut.with_value = {"--grid",
                    "--groups",
                    "--recompute",
                    "--data-parallel-from",
                    "--filter-parallel-from",
                    "--replicas",
                    "--sync",
                    "--local-after",
                    "--cluster"};
  if (value_of(words, "--partition") != "auto") {
    cut.with_value.insert("--partition");
  }
  const std::string reader = value_of(words, "--reader");
  if (reader != "0" && reader != "every") {
    cut.with_value.insert("--reader");
  }
  return cut;
}

// `choose` without the devices that the choice was among is `train`, with a search.
Words training_of_choice(const Words& words) {
  LeftOut choice;
  choice.with_value = {"--objective", "--deadline", "--power-limit"};
  choice.flags = {"--count-idle", "--try-all"};
  Words training = without(words, choice);
  training[1] = "train";
  training.insert(training.end(), {"--partition", "auto"});
  return training;
}

Words together(Words launcher, const Words& program) {
  launcher.insert(launcher.end(), program.begin(), program.end());
  return launcher;
}

// Starts this program, changed from the one that was started, on so many ranks.
std::string line_of(const CommandWords& started, int ranks, Words program) {
  if (!started.supervisor.empty()) {
    program.insert(program.begin() + 1, started.supervisor.begin(), started.supervisor.end());
    return command_line_of(program);
  }
  const bool unseen = started.launcher.empty() && ranks > 1;
  return command_line_of(together(
      unseen ? Words{"mpiexec.mpich", "-n", std::to_string(ranks)} : started.launcher, program));
}

// `tessera run ... -- train ...`; nothing where it is not that.
std::optional<CommandWords> supervised(const Words& words) {
  const auto is_training = [](const auto& word) { return word == "train" || word == "choose"; };
  auto training = std::find(words.begin(), words.end(), "--");
  training = training == words.end() ? std::find_if(words.begin(), words.end(), is_training)
                                     : training + 1;
  if (training == words.begin() || training == words.end()) {
    return std::nullopt;
  }
  CommandWords started{.launcher = {}, .program = {words[0]}, .supervisor = {}};
  started.supervisor.assign(words.begin() + 1, training);
  started.program.insert(started.program.end(), training, words.end());
  return started;
}

}  // namespace

CommandWords started_command() {
  if (const auto typed = supervised(command_of_supervisor())) {
    return *typed;
  }
  CommandWords started;
  started.program = words_of_process(::getpid());
  const Words words = words_of_process(launcher_process());
  const auto program =
      std::search(words.begin(), words.end(), started.program.begin(), started.program.end());
  // Not where it starts several programs: they would have to be changed alike.
  if (program != words.end() &&
      words.end() - program == static_cast<std::ptrdiff_t>(started.program.size())) {
    started.launcher = with_hosts_joined(Words(words.begin(), program));
  }
  return started;
}

std::string started_line(const CommandWords& started) {
  return line_of(started, 1, started.program);
}

bool uses_data_map(const CommandWords& started) {
  return !value_of(started.program, "--data-map").empty();
}

std::string command_to_resume(const CommandWords& started,
                              int ranks,
                              const std::string& checkpoint) {
  return line_of(started, ranks, with_resume(started.program, {}, checkpoint));
}

std::string command_to_continue(const std::string& run) {
  return command_line_of({started_command().program[0], "run", "--continue", run});
}

std::string command_to_resume_in(const std::string& run,
                                 const CommandWords& started,
                                 int ranks,
                                 const std::string& checkpoint) {
  Words program = with_resume(started.program, {{"--run"}, {}}, checkpoint);
  program.insert(program.end(), {"--run", run});
  return line_of(started, ranks, program);
}

std::string command_to_resume_on(const Words& hosts,
                                 const CommandWords& started,
                                 const std::string& checkpoint) {
  Words program = with_resume(started.program, cut_for_devices(started.program), checkpoint);
  if (program.size() > 1 && program[1] == "choose") {
    program = training_of_choice(program);
  }
  const bool here = std::all_of(
      hosts.begin(), hosts.end(), [&](const std::string& host) { return host == hosts[0]; });
  if (here && hosts.size() == 1 && started.launcher.empty()) {
    return command_line_of(program);
  }
  Words launcher = without(started.launcher,
                           {{"-f", "-machinefile", "-n", "-np", "-hosts", "-host", "-ppn"}, {}});
  if (launcher.empty()) {
    launcher = {"mpiexec.mpich"};
  }
  if (!here || !value_of(started.launcher, "-f").empty() ||
      !value_of(started.launcher, "-hosts").empty()) {
    Words places;
    for (std::size_t rank = 0; rank < hosts.size();) {
      const std::size_t first = rank;
      while (rank < hosts.size() && hosts[rank] == hosts[first]) {
        ++rank;
      }
      places.push_back(fmt::format("{}:{}", hosts[first], rank - first));
    }
    launcher.insert(launcher.end(), {"-hosts", fmt::format("{}", fmt::join(places, ","))});
  }
  launcher.insert(launcher.end(), {"-n", std::to_string(hosts.size())});
  return command_line_of(together(launcher, program));
}

}  // namespace tessera::engine
