// Help pages that fit on one screen of 80 columns: `tessera --help`, `tessera COMMAND --help`, and
// by topic `tessera help TOPIC`. How to cut a network, which most commands can be told, is a page
// of its own.

#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace tessera::engine {

// What the options about cutting are put into; they stand on the page `partitioning` alone.
inline constexpr const char* kPartitionGroup = "How to cut the network";
inline constexpr const char* kUsualGroup = "Options";  // CLI11's name for all others

// What an option takes: "N", or its words, "{auto,line}"; empty for flags and positionals.
[[nodiscard]] std::string type_of(const CLI::Option& option);
// The words that an option takes one of; none where it takes anything else.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);
// "-h", "--help"
[[nodiscard]] std::vector<std::string> spellings(const CLI::Option& option);
// Whether an option is a positional argument, and not of the form --name.
[[nodiscard]] bool is_positional(const CLI::Option& option);
// An option's description with what it requires and its default; one line.
[[nodiscard]] std::string description_of(const CLI::Option& option);

// Command lines to learn from, each indented by two spaces; empty where a command has none.
[[nodiscard]] std::string examples_of(const std::string& command);

// How options are listed; to be set before subcommands are added, which take it over.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();

class HelpPages {
 public:
  // Takes the options about cutting off the pages of the subcommands and adds examples to these.
  explicit HelpPages(CLI::App& program);

  // The page of a topic: a command, "partitioning", or "" for all commands. Throws InputError.
  [[nodiscard]] std::string page(const std::string& topic) const;

 private:
  [[nodiscard]] std::string partitioning() const;

  CLI::App* program_;
  std::vector<const CLI::Option*> partition_options_;
};

// The commands of a program, and their names.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& program);
[[nodiscard]] std::vector<std::string> command_names(const CLI::App& program);

// ": did you mean `train`?" where a word is near one of `words`; else nothing.
[[nodiscard]] std::string suggestion(const std::string& word,
                                     const std::vector<std::string>& words);

}  // namespace tessera::engine
