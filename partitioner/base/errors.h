// The two kinds of error that this program raises itself.
//
// InputError: the user's. Something given to the program cannot be used. The message says what was
// found, where (a file and line, or an option), what was expected and what to do; the program
// prints it and exits with 2. It quotes what others wrote: names of files, lines of them; so all of
// a message is made printable. expects(): ours. A promise inside the program does not hold; the
// program stops.

#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera {

class InputError : public std::runtime_error {
 public:
  explicit InputError(std::string_view message);

  // "where:line: message"; a line of 0 is left out.
  InputError(std::string_view where, int line, std::string_view message);
};

// Throws std::logic_error with the place of the call when the condition is false.
void expects(bool condition,
             const char* what_must_hold,
             const char* file = __builtin_FILE(),
             int line = __builtin_LINE());

}  // namespace tessera
