#include "engine/supervisor/boot_unit.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

bool is_control(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return byte < 0x20 || byte == 0x7f;
}

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(), is_control);
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

// "%d" and the like stand for something in any value of a unit.
std::string without_specifiers(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    result.append(letter == '%' ? 2 : 1, letter);
  }
  return result;
}

std::string checked_program(const std::filesystem::path& program) {
  const std::string path = program.string();
  if (!program.is_absolute() || has_control(path) ||
      path.find_first_of("\"'\\") != std::string::npos) {
    throw InputError(path,
                     0,
                     "cannot be started by systemd: it takes absolute paths of programs, without "
                     "quotes, backslashes and control characters");
  }
  return path;
}

// The rest of its line, unquoted: a space at the end would be cut off, and a backslash there would
// join the next line to it.
std::string checked_folder(const std::filesystem::path& folder) {
  const std::string path = folder.string();
  if (!folder.is_absolute() || has_control(path) || !is_utf8(path)) {
    throw InputError(path,
                     0,
                     "cannot be the working folder of a unit of systemd: it takes absolute paths "
                     "in UTF-8, without control characters");
  }
  std::string text = without_specifiers(path);
  if (text.back() != '/') {
    text.push_back('/');
  }
  return text;
}

const std::string& checked_user(const std::string& user) {
  constexpr std::size_t kLongest = 31;
  const auto fits = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '.';
  };
  if (user.empty() || user.size() > kLongest || user.front() == '-' || user.front() == '.' ||
      !std::all_of(user.begin(), user.end(), fits)) {
    throw InputError(fmt::format(
        "'{}' is not the name of a user: expected letters, digits, '_', '-' and '.'", user));
  }
  return user;
}

}  // namespace

std::string unit_word(const std::string& word) {
  std::string text(1, '"');
  for (const char letter : word) {
    const auto byte = static_cast<unsigned char>(letter);
    if (is_control(letter) || byte >= 0x80) {
      text += fmt::format("\\x{:02x}", byte);
      continue;
    }
    if (letter == '"' || letter == '\\') {
      text.push_back('\\');
    } else if (letter == '%') {
      text.push_back('%');
    }
    text.push_back(letter);
  }
  text.push_back('"');
  return text;
}

std::string boot_unit_text(const BootUnit& unit) {
  // The colon: no "$NAME" in the words is replaced.
  std::string command = unit_word(fmt::format(":{}", checked_program(unit.program)));
  for (const std::string& word : unit.words) {
    command.push_back(' ');
    command += unit_word(word);
  }
  return fmt::format(
      "[Unit]\n"
      "Description=Training by tessera\n"
      "Wants=network-online.target\n"
      "After=network-online.target\n"
      "# A device that it needs may start later than this one; what fails for an hour keeps "
      "failing.\n"
      "StartLimitIntervalSec=1d\n"
      "StartLimitBurst=60\n"
      "\n"
      "[Service]\n"
      "Type=exec\n"
      "User={}\n"
      "WorkingDirectory={}\n"
      "ExecStart={}\n"
      "Restart=on-failure\n"
      "RestartSec=60\n"
      "# Ended by SIGHUP, SIGINT or SIGTERM: somebody has stopped it.\n"
      "SuccessExitStatus=129 130 143\n"
      "# Only the first process is asked to end: it ends the others when their work is saved.\n"
      "KillMode=mixed\n"
      "TimeoutStopSec=300\n"
      "\n"
      "[Install]\n"
      "WantedBy=multi-user.target\n",
      checked_user(unit.user),
      checked_folder(unit.folder),
      command);
}

}  // namespace tessera::engine
