#include "engine/cli/completion.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cli/help.h"

namespace tessera::engine {

namespace {

// What stands for paths where options take something.
constexpr std::array<std::string_view, 3> kPathTypes{"FILE", "DIR", "DATA"};

// What may follow an option.
enum class Follows { Nothing, Word, Path, Other };

Follows follows(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    return Follows::Nothing;
  }
  if (!choices_of(option).empty()) {
    return Follows::Word;
  }
  const bool path =
      std::find(kPathTypes.begin(), kPathTypes.end(), type_of(option)) != kPathTypes.end();
  return path ? Follows::Path : Follows::Other;
}

// The options of the help: neither positional arguments nor older names.
std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) {
    return !is_positional(*option) && !option->get_group().empty();
  });
}

std::vector<std::string> all_spellings(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : shown_options(app)) {
    for (const std::string& name : spellings(*option)) {
      names.push_back(name);
    }
  }
  return names;
}

// Text with a backslash before each of some letters.
std::string with_backslashes(const std::string& text, std::string_view letters) {
  std::string escaped;
  for (const char letter : text) {
    if (letters.find(letter) != std::string_view::npos) {
      escaped += '\\';
    }
    escaped += letter;
  }
  return escaped;
}

// Text between single quotes, for bash and zsh.
std::string single_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text) {
    quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  }
  return quoted + "'";
}

constexpr const char* kBashStart = R"(# Completion of tessera for bash.

_tessera() {
  COMPREPLY=()
  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command='' at
  # bash takes --option=word apart into three.
  if [ "$word" = = ]; then
    word=''
  elif [ "$option" = = ]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((at = 1; at < COMP_CWORD; at++)); do
    case $command/${COMP_WORDS[at]} in
      run/--) command='' ;; # then comes the command that it runs
      /-*) ;;
      /*) command=${COMP_WORDS[at]} ;;
    esac
  done
  local options='' words=''
)";

// Where COMPREPLY stays empty, bash completes files.
constexpr const char* kBashEnd = R"(  case $word in
    -*) words=$options ;;
  esac
  [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o bashdefault -o default -F _tessera tessera
)";

// A branch of bash's `case` for each command with its options.
std::string bash_options(const CLI::App& program) {
  std::string text = "  case $command in\n";
  for (const CLI::App* command : commands_of(program)) {
    text += fmt::format(
        "    {}) options='{}' ;;\n", command->get_name(), fmt::join(all_spellings(*command), " "));
  }
  const std::vector<std::string> names = command_names(program);
  text += fmt::format("    help) words='{} partitioning' ;;\n", fmt::join(names, " "));
  text += fmt::format("    '') words='{} help' options='{}' ;;\n",
                      fmt::join(names, " "),
                      fmt::join(all_spellings(program), " "));
  return text + "  esac\n";
}

// Branches for options after which only certain words are right, or no file.
std::string bash_values(const CLI::App& program) {
  std::string text = "  case $command/$option in\n";
  std::string others;
  std::string paths;
  for (const CLI::App* command : commands_of(program)) {
    for (const CLI::Option* option : shown_options(*command)) {
      const std::string pattern =
          fmt::format("{}/{}",
                      command->get_name(),
                      fmt::join(spellings(*option), "|" + command->get_name() + "/"));
      const Follows what = follows(*option);
      if (what == Follows::Word) {
        text += fmt::format(
            "    {}) words='{}' options='' ;;\n", pattern, fmt::join(choices_of(*option), " "));
      } else if (what == Follows::Path) {
        paths += (paths.empty() ? "" : "|") + pattern;
      } else if (what == Follows::Other) {
        others += (others.empty() ? "" : "|") + pattern;
      }
    }
  }
  text += fmt::format("    {}) return ;;\n", paths);
  text += fmt::format("    {}) compopt +o default +o bashdefault; return ;;\n", others);
  return text + "  esac\n";
}

// An option of fish or of zsh, whose descriptions are lines.
std::string fish_option(const std::string& condition, const CLI::Option& option) {
  std::string text = "complete -c tessera -n '" + condition + "'";
  for (const std::string& name : option.get_snames()) {
    text += " -s " + name;
  }
  for (const std::string& name : option.get_lnames()) {
    text += " -l " + name;
  }
  switch (follows(option)) {
    case Follows::Nothing:
      break;
    case Follows::Word:
      text += fmt::format(" -x -a '{}'", fmt::join(choices_of(option), " "));
      break;
    case Follows::Path:
      text += " -r -F";
      break;
    case Follows::Other:
      text += " -x";
      break;
  }
  return text + " -d '" + with_backslashes(option.get_description(), "\\'") + "'\n";
}

std::string zsh_option(const CLI::Option& option) {
  std::string value;
  switch (follows(option)) {
    case Follows::Nothing:
      break;
    case Follows::Word:
      value = fmt::format(":word:({})", fmt::join(choices_of(option), " "));
      break;
    case Follows::Path:
      value = ":file:_files";
      break;
    case Follows::Other:
      value = ":" + with_backslashes(type_of(option), ":") + ": ";
      break;
  }
  std::string text;
  for (const std::string& name : spellings(option)) {
    text += " \\\n        " +
            single_quoted(fmt::format(
                "{}[{}]{}", name, with_backslashes(option.get_description(), "\\[]:"), value));
  }
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& program) {
  return kBashStart + bash_options(program) + bash_values(program) + kBashEnd;
}

std::string fish_completion(const CLI::App& program) {
  std::string text = "# Completion of tessera for fish.\n\ncomplete -c tessera -f\n";
  const std::string first = "__fish_use_subcommand";
  for (const CLI::Option* option : shown_options(program)) {
    text += fish_option(first, *option);
  }
  for (const CLI::App* command : commands_of(program)) {
    text += fmt::format("complete -c tessera -n '{}' -a {} -d '{}'\n",
                        first,
                        command->get_name(),
                        with_backslashes(command->get_description(), "\\'"));
  }
  text +=
      fmt::format("complete -c tessera -n '{}' -a help -d 'show the help of a command'\n", first);
  text += fmt::format(
      "complete -c tessera -n '__fish_seen_subcommand_from help' -a '{} partitioning'\n",
      fmt::join(command_names(program), " "));
  for (const CLI::App* command : commands_of(program)) {
    const std::string condition = "__fish_seen_subcommand_from " + command->get_name();
    for (const CLI::Option* option : shown_options(*command)) {
      text += fish_option(condition, *option);
    }
    text += "complete -c tessera -n '" + condition + "' -F\n";
  }
  return text;
}

std::string zsh_completion(const CLI::App& program) {
  std::string text =
      "#compdef tessera\n# Completion of tessera for zsh.\n\n_tessera() {\n  local -a commands=(\n";
  for (const CLI::App* command : commands_of(program)) {
    text += "    " + single_quoted(command->get_name() + ":" + command->get_description()) + "\n";
  }
  text +=
      "    'help:show the help of a command'\n  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe -t commands command commands\n"
      "    return\n"
      "  fi\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $words[1] in\n";
  for (const CLI::App* command : commands_of(program)) {
    text += fmt::format("    {})\n      _arguments", command->get_name());
    for (const CLI::Option* option : shown_options(*command)) {
      text += zsh_option(*option);
    }
    text += " \\\n        '*:file:_files' ;;\n";
  }
  return text + "    help) _describe -t commands command commands ;;\n  esac\n}\n_tessera \"$@\"\n";
}

}  // namespace tessera::engine
