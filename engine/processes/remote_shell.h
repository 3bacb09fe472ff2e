// Commands on other devices by a remote shell: ssh, or a program that is called like rsh, SHELL
// HOST COMMAND.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

// The remote shell with options that keep it from asking questions and from waiting for a device
// that is off; the host follows.
[[nodiscard]] std::vector<std::string> remote_shell_words(const std::string& remote_shell);

// The words that run a command line of the shell at the far end.
[[nodiscard]] std::vector<std::string> remote_command(const std::string& remote_shell,
                                                      const std::string& host,
                                                      const std::string& command_line);

}  // namespace tessera::engine
