// What a command prints, without ever waiting for it for long.

#pragma once

#include <stop_token>
#include <string>

namespace tessera::engine {

// Runs `/bin/sh -c command` without standard input and with standard error thrown away, in a
// process group of its own, and returns what it writes to standard output, at most 64 KiB. It and
// all that it started are killed after `seconds`, or when `stop` asks for it. Throws InputError
// where it cannot be started, takes longer, prints more, or does not exit with 0.
[[nodiscard]] std::string command_output(const std::string& command,
                                         double seconds,
                                         const std::stop_token& stop = {});

}  // namespace tessera::engine
