#include "partitioner/base/errors.h"

#include "partitioner/base/printable.h"

namespace tessera {

namespace {

std::string located(std::string_view where, int line, std::string_view message) {
  std::string text(where);
  if (line > 0) {
    text += ':' + std::to_string(line);
  }
  text += ": ";
  text += message;
  return text;
}

}  // namespace

InputError::InputError(std::string_view message) : std::runtime_error(printable(message)) {}

InputError::InputError(std::string_view where, int line, std::string_view message)
    : InputError(located(where, line, message)) {}

void expects(bool condition, const char* what_must_hold, const char* file, int line) {
  if (!condition) {
    throw std::logic_error(located(file, line, std::string("assertion failed: ") + what_must_hold));
  }
}

}  // namespace tessera
