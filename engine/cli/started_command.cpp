#include "engine/cli/started_command.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "engine/processes/launcher.h"
#include "engine/supervisor/agent_line.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

using Words = std::vector<std::string>;

std::string line_of(const Words& words) {
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

}  // namespace

std::string started_line() {
  const Words typed = command_of_supervisor();
  if (!typed.empty()) {
    return line_of(typed);
  }
  const Words program = words_of_process(::getpid());
  const Words launcher = words_of_process(launcher_process());
  const auto at = std::search(launcher.begin(), launcher.end(), program.begin(), program.end());
  // Not where it starts several programs.
  const bool starts_this =
      at != launcher.end() && launcher.end() - at == static_cast<std::ptrdiff_t>(program.size());
  return line_of(starts_this ? with_hosts_joined(launcher) : program);
}

std::string started_program() {
  const Words words = words_of_process(::getpid());
  return shell_word(words.empty() ? "tessera" : words.front());
}

std::string advice_to_resume(const std::string& checkpoint) {
  return fmt::format("the same command with --resume {}", shell_word(printable(checkpoint)));
}

std::string command_to_continue(const std::string& run) {
  return fmt::format("{} run --continue {}", started_program(), shell_word(printable(run)));
}

}  // namespace tessera::engine
