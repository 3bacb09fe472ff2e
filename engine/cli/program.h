// The program as a whole: what it says of itself beside its commands, on its help page and its
// manual page.

#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <string>

#include "engine/cli/command_table.h"

namespace tessera::engine {

// A word and what it means.
struct Explanation {
  const char* word;
  const char* meaning;
};

inline constexpr const char* kSummary =
    "train convolutional networks on several small machines at once";

// What the program does, and which of its commands need no mpiexec.
[[nodiscard]] std::string program_purpose();

inline constexpr std::array<Explanation, 6> kExitCodes{
    {{"0", "done"},
     {"1", "check found differences, doctor or deploy a problem, or an internal error"},
     {"2", "invalid input"},
     {"3", "plan: it does not fit"},
     {"75", "another device has not answered"},
     {"128 + signal", "stopped by SIGINT, SIGTERM or SIGHUP (130, 143, 129)"}}};

inline constexpr std::array<Explanation, 4> kEnvironment{
    {{"OMP_NUM_THREADS",
      "threads of each rank (default: the machine's processors divided among its ranks)"},
     {"HYDRA_HOST_FILE",
      "the host file of mpiexec.mpich; with .cluster.toml appended, the default of --cluster"},
     {"TESSERA_START_TIMEOUT", "seconds in which all ranks must have started (default: 30)"},
     {"TESSERA_VECTORS",
      "generic, avx2, avx512, cortex-a53 or neon: the instructions to compute with, where unlike "
      "machines are to "
      "compute the same bits (default: the widest vectors that the machine has)"}}};

inline constexpr const char* kProgramExamples =
    "  tessera train m.cfg --data photos --run runs/a --epochs 20\n"
    "  mpiexec.mpich -n 4 tessera train m.cfg --data photos --run runs/a --grid 2x2\n"
    "  tessera predict m.cfg cup.jpg --weights runs/a/checkpoint.safetensors\n";

// Gives `program`, named "tessera", its description, flags and subcommands; parsing fills
// `commands`, which must outlive it.
void set_up_program(CLI::App& program, Commands& commands);

}  // namespace tessera::engine
