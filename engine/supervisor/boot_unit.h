// A unit of systemd that starts a training run when its device has booted, and again where it
// failed, at most 60 times a day; not where it ended with 0 or was stopped by a signal. Nothing is
// written: whoever installs the text needs root.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::engine {

struct BootUnit {
  std::filesystem::path program;        // absolute
  std::filesystem::path folder;         // absolute: that the command is to run in
  std::string user;                     // who runs it, by name or number
  std::vector<std::string> words = {};  // of the command, behind the program; any bytes but 0
};

// The text of tessera.service. Words reach the program byte for byte, whatever is in them: systemd
// expands nothing in them and takes nothing in them for a line of its own. Throws InputError for
// what it cannot express: a relative path, quotes, backslashes or control characters in the path of
// the program, control characters or bytes that are no UTF-8 in the folder's, and a name that no
// user has.
[[nodiscard]] std::string boot_unit_text(const BootUnit& unit);

// A word of a command line in a unit (systemd.service(5), systemd.syntax(7)): in double quotes,
// with percent signs doubled.
[[nodiscard]] std::string unit_word(const std::string& word);

}  // namespace tessera::engine
