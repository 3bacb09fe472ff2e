#include "engine/cli/program.h"

#include <fmt/format.h>
#include <string>

#include "engine/cli/help.h"
#include "engine/cli/version.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kProgramWidth = 80;

std::string program_description() {
  std::string codes = "Exit codes:";
  for (const Explanation& code : kExitCodes) {
    codes += fmt::format(" {} {};", code.word, code.meaning);
  }
  codes.back() = '.';
  return in_lines(kPurpose, kProgramWidth, 0) + "\n" + in_lines(codes, kProgramWidth, 0);
}

std::string program_footer() {
  std::string text =
      std::string("More: tessera help COMMAND, tessera help partitioning\nExamples:\n") +
      kProgramExamples;
  text.pop_back();  // the formatter ends the line
  return text;
}

}  // namespace

void set_up_program(CLI::App& program, Commands& commands) {
  program.description(program_description());
  program.require_subcommand(1);
  program.formatter(help_formatter());
  program.set_version_flag("--version", program_version(), "show the version and exit");
  program.set_help_flag("-h,--help", "show this help and exit");
  program.footer(program_footer());
  add_commands(program, commands);
}

}  // namespace tessera::engine
