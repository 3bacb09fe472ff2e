#include "engine/cli/command_line.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <sstream>
#include <string_view>

#include "engine/cli/version.h"
#include "engine/comm/agreement.h"
#include "engine/comm/sameness.h"
#include "engine/host_name.h"

namespace engine {

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

// What is wrong with the command line, and whose help to look at.
std::string complaint(const CLI::App& program, const CLI::ParseError& error) {
  const auto given = program.get_subcommands();
  if (!given.empty()) {
    return fmt::format("{} (see tessera {} --help)", error.what(), given.front()->get_name());
  }
  std::string names;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return fmt::format("the first word is to be what to do, one of {} (see tessera --help)", names);
}

// What the others learn of a rank.
struct Start {
  std::string host;
  std::string program;
  std::string problem;
  std::vector<std::string> words;
};

// Parts end in a zero, which no argument can hold.
std::string packed(const Start& start) {
  std::string text;
  for (const std::string* part : {&start.host, &start.program, &start.problem}) {
    text += *part + '\0';
  }
  for (const std::string& word : start.words) {
    text += word + '\0';
  }
  return text;
}

Start unpacked(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::istringstream parts(text);
  Start start;
  for (std::string* part : {&start.host, &start.program, &start.problem}) {
    std::getline(parts, *part, '\0');
  }
  for (std::string word; std::getline(parts, word, '\0');) {
    start.words.push_back(word);
  }
  return start;
}

// The words of one that the other lacks.
std::string words_beyond(const Start& one, const Start& other) {
  std::vector<std::string> beyond;
  for (const std::string& word : one.words) {
    if (std::find(other.words.begin(), other.words.end(), word) == other.words.end()) {
      beyond.push_back(word);
    }
  }
  return fmt::format("{}", fmt::join(beyond, " "));
}

std::string difference(const Start& its, const Start& first) {
  const std::string more = words_beyond(its, first);
  const std::string less = words_beyond(first, its);
  if (less.empty()) {
    return more + " too";
  }
  return more.empty() ? "without " + less : more + " instead of " + less;
}

// Why the rank cannot work together with rank 0; empty where it can.
std::string obstacle(const std::vector<Start>& starts, std::size_t rank) {
  const Start& first = starts[0];
  const Start& its = starts[rank];
  const std::string name = rank_on(static_cast<int>(rank), its.host);
  const std::string first_name = rank_on(0, first.host);
  if (its.program != first.program) {
    return fmt::format(
        "{} runs another version of the program than {}, {} instead of {}: copy the "
        "same to all machines",
        name,
        first_name,
        its.program,
        first.program);
  }
  if (!its.problem.empty()) {
    return fmt::format("{}: {}", name, its.problem);
  }
  if (its.words != first.words) {
    return fmt::format(
        "{} was started with other options than {}: {}", name, first_name, difference(its, first));
  }
  return "";
}

}  // namespace

CommandLine read_command_line(CLI::App& program, int argc, char** argv) {
  CommandLine line;
  try {
    program.parse(argc, argv);
    line.words = understood(program);
  } catch (const CLI::Success& asked) {
    std::ostringstream answer;
    program.exit(asked, answer, answer);
    line.answer = answer.str();
    line.words = {asked.get_name() == "CallForVersion" ? "--version" : "--help"};
  } catch (const CLI::ParseError& error) {
    line.problem = complaint(program, error);
  }
  return line;
}

void expect_same_start(const CommandLine& mine, const Communicator& communicator) {
  const std::string text = packed({host_name(), program_sources(), mine.problem, mine.words});
  std::vector<Start> starts;
  for (const auto& bytes : communicator.gather_all(bytes_of(text.data(), std::ssize(text)))) {
    starts.push_back(unpacked(bytes));
  }
  const bool all_alike = std::all_of(starts.begin(), starts.end(), [&](const Start& start) {
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

}  // namespace engine
