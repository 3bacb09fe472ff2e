#include "engine/cli/manual.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <functional>
#include <sstream>
#include <vector>

#include "engine/cli/help.h"
#include "engine/cli/program.h"
#include "engine/cli/version.h"

namespace tessera::engine {

namespace {

// As it is to be read, whatever roff makes of these characters: also options are to be found and
// copied as they are typed.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '`':
        escaped += "\\(ga";
        break;
      case '^':
        escaped += "\\(ha";
        break;
      case '~':
        escaped += "\\(ti";
        break;
      default:
        escaped += letter;
    }
  }
  return !escaped.empty() && escaped.front() == '.' ? "\\&" + escaped : escaped;
}

std::string bold(const std::string& text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(const std::string& text) {
  return "\\fI" + roff(text) + "\\fR";
}

// Prose, a sentence on lines of its own.
std::string prose(const std::string& text) {
  constexpr std::size_t kLine = 66;  // escapes come on top
  std::istringstream words(text);
  std::string lines;
  std::string line;
  const auto end_line = [&] {
    lines += line.empty() ? "" : roff(line) + "\n";
    line.clear();
  };
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kLine) {
      end_line();
    }
    line += (line.empty() ? "" : " ") + word;
    if (word.back() == '.') {
      end_line();
    }
  }
  end_line();
  return lines;
}

// Command lines, indented by two spaces, as they stand.
std::string literal(const std::string& text) {
  std::istringstream lines(text);
  std::string written = ".nf\n";
  for (std::string line; std::getline(lines, line);) {
    written += roff(line.substr(std::min<std::size_t>(line.size(), 2))) + "\n";
  }
  return written + ".fi\n";
}

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  return text;
}

std::string title(const std::string& name, const std::string& date) {
  return fmt::format(
      ".TH {} 1 {} \"{}\" Tessera\n", roff(in_capitals(name)), date, program_version());
}

// "--run DIR", with its names in bold and what it takes in italics.
std::string manual_name(const CLI::Option& option) {
  if (is_positional(option)) {
    return italic(option.get_name());
  }
  std::string names;
  for (const std::string& name : spellings(option)) {
    names += (names.empty() ? "" : ", ") + bold(name);
  }
  const std::string type = type_of(option);
  return names + (type.empty() ? "" : " " + italic(type));
}

using Selection = std::function<bool(const CLI::Option&)>;

// A section of the options that are selected; nothing where there are none.
std::string manual_options(const CLI::App& app, const char* heading, const Selection& selected) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty() && selected(*option)) {
      text += ".TP\n" + manual_name(*option) + "\n" + prose(description_of(*option));
    }
  }
  return text.empty() ? "" : fmt::format(".SH {}\n{}", heading, text);
}

template <class Explanations>
std::string manual_list(const char* heading, const Explanations& explanations) {
  std::string text = fmt::format(".SH {}\n", heading);
  for (const Explanation& explanation : explanations) {
    text += ".TP\n" + bold(explanation.word) + "\n" + prose(explanation.meaning);
  }
  return text;
}

std::string examples_section(const std::string& examples) {
  return examples.empty() ? "" : ".SH EXAMPLES\n" + literal(examples);
}

// Pages by name, in alphabetical order.
std::string see_also(std::vector<std::string> pages) {
  std::sort(pages.begin(), pages.end());
  std::string text = ".SH SEE ALSO\n";
  for (const std::string& page : pages) {
    text += fmt::format(".BR {} (1){}\n", roff(page), &page == &pages.back() ? "" : ",");
  }
  return text;
}

bool about_cutting(const CLI::Option& option) {
  return option.get_group() == kPartitionGroup;
}

// "[OPTION]... MODEL PICTURES..."
std::string manual_synopsis(const CLI::App& program, const CLI::App& command) {
  std::string text = bold(program.get_name() + " " + command.get_name());
  text += " [" + italic("OPTION") + "]...";
  for (const CLI::Option* option : command.get_options()) {
    if (is_positional(*option)) {
      const std::string name = italic(option->get_name());
      const char* const more = option->get_items_expected_max() > 1 ? "..." : "";
      text += option->get_required() ? " " + name + more : " [" + name + "]" + more;
    }
  }
  return text + "\n";
}

}  // namespace

std::string program_manual(const CLI::App& program, const std::string& date) {
  std::string text = title(program.get_name(), date);
  text += ".SH NAME\n" + prose(program.get_name() + " - " + kSummary);
  text += ".SH SYNOPSIS\n" + bold(program.get_name()) + " " + italic("COMMAND") + " [" +
          italic("OPTION") + "]...\n.br\n" + bold("mpiexec.mpich -n") + " " + italic("RANKS") +
          " " + bold(program.get_name()) + " " + italic("COMMAND") + " [" + italic("OPTION") +
          "]...\n";
  text += ".SH DESCRIPTION\n" + prose(program_purpose());
  text += ".SH COMMANDS\n";
  std::vector<std::string> pages;
  for (const CLI::App* command : commands_of(program)) {
    text += ".TP\n" + bold(command->get_name()) + "\n" + prose(command->get_description());
    pages.push_back(program.get_name() + "-" + command->get_name());
  }
  text += ".TP\n" + bold("help") + " [" + italic("COMMAND") + "]\n" +
          prose("show the help of a command, or with partitioning the options about cutting");
  text += manual_options(program, "OPTIONS", [](const CLI::Option&) { return true; });
  text += manual_list("EXIT STATUS", kExitCodes);
  text += manual_list("ENVIRONMENT", kEnvironment);
  return text + examples_section(kProgramExamples) + see_also(pages);
}

std::string command_manual(const CLI::App& program,
                           const CLI::App& command,
                           const std::string& date) {
  const std::string name = program.get_name() + "-" + command.get_name();
  std::string text = title(name, date);
  text += ".SH NAME\n" + prose(name + " - " + command.get_description());
  text += ".SH SYNOPSIS\n" + manual_synopsis(program, command);
  text += manual_options(command, "ARGUMENTS", is_positional);
  text += manual_options(command, "OPTIONS", [](const CLI::Option& option) {
    return !is_positional(option) && !about_cutting(option);
  });
  text += manual_options(command, "HOW TO CUT THE NETWORK", about_cutting);
  return text + examples_section(examples_of(command.get_name())) + see_also({program.get_name()});
}

}  // namespace tessera::engine
