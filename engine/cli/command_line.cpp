#include "engine/cli/command_line.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>
#include <string_view>

#include "engine/cli/version.h"
#include "engine/comm/agreement.h"
#include "engine/comm/rank_equality.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/system/host_name.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

// What machines may have each in its own way: their processors, and where their pictures are.
constexpr std::array<std::string_view, 3> kOwnOfRanks{"--threads", "--data", "PICTURES"};

std::vector<std::string> understood(const CLI::App& program) {
  std::vector<std::string> words;
  for (const CLI::App* command : program.get_subcommands()) {
    words.push_back(command->get_name());
    for (const CLI::Option* option : command->get_options()) {
      const std::string name = option->get_name();
      const bool own = std::find(kOwnOfRanks.begin(), kOwnOfRanks.end(), name) != kOwnOfRanks.end();
      if (option->count() > 0 && !own) {
        const bool flag = option->get_items_expected_max() == 0;
        words.push_back(flag ? name
                             : fmt::format("{} {}", name, fmt::join(option->results(), ",")));
      }
    }
  }
  return words;
}

// The options that may be given after a command: "--data", ...
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

// The place in `words` of the first of them that are `unexpected`, which are in the same order.
std::size_t first_of(const std::vector<std::string>& words,
                     const std::vector<std::string>& unexpected) {
  std::size_t at = words.size();
  for (auto word = unexpected.rbegin(); word != unexpected.rend(); ++word) {
    while (at > 0 && words[at - 1] != *word) {
      --at;
    }
    at -= at > 0 ? 1 : 0;
  }
  return at;
}

// Arguments that are no option's and beyond what the command takes, in the order in which they were
// given.
std::string unexpected_words(const CLI::App& command, const std::vector<std::string>& words) {
  const std::vector<std::string> unexpected = command.remaining();
  const auto option = std::find_if(unexpected.begin(), unexpected.end(), [](const auto& word) {
    return word.size() > 1 && word[0] == '-';
  });
  if (option != unexpected.end()) {
    const std::string name = option->substr(0, option->find('='));
    return fmt::format(
        "unknown option {}{}", printable_start(name), suggestion(name, option_names(command)));
  }
  std::vector<std::string> quoted;
  for (const std::string& word : unexpected) {
    quoted.push_back(fmt::format("'{}'", printable_start(word)));
  }
  const std::size_t at = first_of(words, unexpected);
  return fmt::format("unexpected argument{} {}{}",
                     quoted.size() == 1 ? "" : "s",
                     fmt::join(quoted, ", "),
                     at > 0 ? fmt::format(" after '{}'", printable_start(words[at - 1])) : "");
}

// `tessera run -n 2 train ...`: whether the command to run begins without what keeps its options
// from being those of `run`.
bool lacks_dashes(const CLI::App& command, const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 2> kCommands{"train", "choose"};
  return command.get_name() == "run" &&
         std::find(words.begin(), words.end(), "--") == words.end() &&
         std::find_first_of(words.begin(), words.end(), kCommands.begin(), kCommands.end()) !=
             words.end();
}

// What is wrong with the command line, and whose help to look at.
std::string complaint(const CLI::App& program,
                      const CLI::ParseError& error,
                      const std::vector<std::string>& words) {
  const auto given = program.get_subcommands();
  if (!given.empty()) {
    const CLI::App& command = *given.front();
    if (lacks_dashes(command, words)) {
      return "expected -- between the options of run and the command that it is to run, as in: "
             "tessera run -n 2 -- train ... (see tessera run --help)";
    }
    // A word that was misspelt may also be one that is missing now.
    const bool unexpected = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                            dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    return fmt::format("{} (see tessera {} --help)",
                       unexpected && !command.remaining().empty() ? unexpected_words(command, words)
                                                                  : error.what(),
                       command.get_name());
  }
  const std::vector<std::string> names = command_names(program);
  if (words.empty()) {
    return fmt::format("expected a command: {} (see tessera --help)", fmt::join(names, ", "));
  }
  return fmt::format("unknown command \"{}\"{} (expected one of {}; see tessera --help)",
                     printable_start(words.front()),
                     suggestion(words.front(), names),
                     fmt::join(names, ", "));
}

// What the others learn of a rank.
struct RankStart {
  std::string host;
  std::string program;
  std::string problem;
  std::vector<std::string> words;
};

// The words of one that the other lacks.
std::string words_beyond(const RankStart& one, const RankStart& other) {
  std::vector<std::string> beyond;
  for (const std::string& word : one.words) {
    if (std::find(other.words.begin(), other.words.end(), word) == other.words.end()) {
      beyond.push_back(word);
    }
  }
  return fmt::format("{}", fmt::join(beyond, " "));
}

std::string start_difference(const RankStart& its, const RankStart& first) {
  const std::string more = words_beyond(its, first);
  const std::string less = words_beyond(first, its);
  if (less.empty()) {
    return more + " too";
  }
  return more.empty() ? "without " + less : more + " instead of " + less;
}

// Why the rank cannot work together with rank 0; empty where it can.
std::string obstacle(const std::vector<RankStart>& starts, std::size_t rank) {
  const RankStart& first = starts[0];
  const RankStart& its = starts[rank];
  const std::string name = rank_on(static_cast<int>(rank), its.host);
  const std::string first_name = rank_on(0, first.host);
  if (its.program != first.program) {
    return fmt::format(
        "{} runs another version of the program than {}, {} instead of {}: copy the same program "
        "to all machines",
        name,
        first_name,
        its.program,
        first.program);
  }
  if (!its.problem.empty()) {
    return fmt::format("{}: {}", name, its.problem);
  }
  if (its.words != first.words) {
    return fmt::format("{} was started with different options than {}: {}",
                       name,
                       first_name,
                       start_difference(its, first));
  }
  return "";
}

// `tessera help [TOPIC]`.
CommandLine help_line(const HelpPages& help, const std::vector<std::string>& words) {
  CommandLine line;
  line.words = words;
  if (words.size() > 2) {
    line.problem = fmt::format("unexpected argument '{}' after '{}' (see tessera help)",
                               printable_start(words[2]),
                               printable_start(words[1]));
    return line;
  }
  try {
    line.answer = help.page(words.size() == 2 ? words[1] : "");
  } catch (const InputError& error) {
    line.problem = error.what();
  }
  return line;
}

}  // namespace

CommandLine read_command_line(CLI::App& program, const HelpPages& help, int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "help") {
    return help_line(help, words);
  }
  CommandLine line;
  try {
    program.parse(argc, argv);
    line.words = understood(program);
  } catch (const CLI::Success& asked) {
    std::ostringstream answer;
    program.exit(asked, answer, answer);
    line.answer = answer.str();
    line.words = {asked.get_name() == "CallForVersion" ? "--version" : "--help"};
  } catch (const InputError& error) {  // of what an option's text means
    line.problem = error.what();
  } catch (const CLI::ParseError& error) {
    line.problem = complaint(program, error, words);
  }
  return line;
}

void expect_same_start(const CommandLine& mine, const Communicator& communicator) {
  std::vector<std::string> parts{host_name(), program_sources(), mine.problem};
  parts.insert(parts.end(), mine.words.begin(), mine.words.end());
  std::vector<RankStart> starts;
  for (const std::vector<std::string>& theirs : lists_of_ranks(communicator, parts)) {
    starts.push_back({theirs[0], theirs[1], theirs[2], {theirs.begin() + 3, theirs.end()}});
  }
  const bool all_alike = std::all_of(starts.begin(), starts.end(), [&](const RankStart& start) {
    return start.program == starts[0].program && start.problem == starts[0].problem;
  });
  if (all_alike && !mine.problem.empty()) {
    throw AgreedError(mine.problem);
  }
  for (std::size_t rank = 0; rank < starts.size(); ++rank) {
    if (const std::string found = obstacle(starts, rank); !found.empty()) {
      throw AgreedError(found);
    }
  }
}

}  // namespace tessera::engine
