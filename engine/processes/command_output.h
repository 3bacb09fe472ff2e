// What a program prints, without ever waiting for it for long.

#pragma once

#include <stop_token>
#include <string>

#include "engine/processes/child_process.h"

namespace tessera::engine {

// Runs a program without standard input and with standard error thrown away, in a process group of
// its own, and returns what it writes to standard output, at most 64 KiB. It and all that it
// started are killed after `seconds`, or when `stop` asks for it. Throws InputError that begins
// with `name` where it takes longer, prints more, or does not exit with 0.
[[nodiscard]] std::string output_of(const ProgramToStart& program,
                                    const std::string& name,
                                    double seconds,
                                    const std::stop_token& stop = {});

// The same of `/bin/sh -c command`.
[[nodiscard]] std::string command_output(const std::string& command,
                                         double seconds,
                                         const std::stop_token& stop = {});

}  // namespace tessera::engine
