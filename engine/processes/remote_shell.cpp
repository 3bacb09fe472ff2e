#include "engine/processes/remote_shell.h"

namespace tessera::engine {

std::vector<std::string> remote_shell_words(const std::string& remote_shell) {
  std::vector<std::string> words{remote_shell};
  if (remote_shell.substr(remote_shell.rfind('/') + 1) == "ssh") {
    // Nobody is there to answer questions, and a device that is off answers nothing.
    words.insert(words.end(), {"-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"});
  }
  return words;
}

std::vector<std::string> remote_command(const std::string& remote_shell,
                                        const std::string& host,
                                        const std::string& command_line) {
  std::vector<std::string> words = remote_shell_words(remote_shell);
  words.insert(words.end(), {host, command_line});
  return words;
}

}  // namespace tessera::engine
