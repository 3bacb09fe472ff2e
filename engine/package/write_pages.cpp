// Writes manual pages and completion scripts of the program into a folder, for its installation:
// write_pages FOLDER DATE.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/cli/completion.h"
#include "engine/cli/help.h"
#include "engine/cli/manual.h"
#include "engine/cli/program.h"

namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out.exceptions(std::ios::badbit | std::ios::failbit);
  out << text;
  out.close();
}

void write_pages(const fs::path& folder, const std::string& date) {
  CLI::App program("", "tessera");
  tessera::engine::Commands commands;
  tessera::engine::set_up_program(program, commands);
  fs::create_directories(folder);
  write_text(folder / "tessera.1", tessera::engine::program_manual(program, date));
  for (const CLI::App* command : tessera::engine::commands_of(program)) {
    write_text(folder / ("tessera-" + command->get_name() + ".1"),
               tessera::engine::command_manual(program, *command, date));
  }
  write_text(folder / "tessera", tessera::engine::bash_completion(program));
  write_text(folder / "tessera.fish", tessera::engine::fish_completion(program));
  write_text(folder / "_tessera", tessera::engine::zsh_completion(program));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "write_pages FOLDER DATE\n");
    return 2;
  }
  try {
    write_pages(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_pages: %s\n", error.what());
    return 1;
  }
}
