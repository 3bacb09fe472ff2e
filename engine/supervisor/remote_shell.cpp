#include "engine/supervisor/remote_shell.h"

#include <string_view>

namespace tessera::engine {

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:@%+-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  std::string text = "'";
  for (const char letter : word) {
    text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return text + "'";
}

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
