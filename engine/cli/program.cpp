#include "engine/cli/program.h"

#include <fmt/format.h>
#include <string>

#include "engine/cli/help.h"
#include "engine/cli/version.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kProgramWidth = 80;

std::string program_description() {
  std::string codes = "Exit codes:";
  for (const Explanation& code : kExitCodes) {
    codes += fmt::format(" {} {};", code.word, code.meaning);
  }
  codes.back() = '.';
  return in_lines(program_purpose(), kProgramWidth, 0) + "\n" + in_lines(codes, kProgramWidth, 0);
}

std::string program_footer() {
  std::string text =
      std::string("More: tessera help COMMAND, tessera help partitioning\nExamples:\n") +
      kProgramExamples;
  text.pop_back();  // the formatter ends the line
  return text;
}

}  // namespace

std::string program_purpose() {
  std::string alone;
  for (const CommandRow& row : command_rows()) {
    alone += row.run_together ? "" : row.name + ", ";
  }
  return fmt::format(
      "Trains convolutional networks on several small machines at once: feature maps are cut into "
      "tiles, one per device. For several devices, start it with mpiexec.mpich -n RANKS. Commands "
      "that need no mpiexec: {}.",
      alone.substr(0, alone.size() - 2));
}

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
