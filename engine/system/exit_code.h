// Exit codes of the program, as far as an exception says which: engine/how-a-run-ends.md has them
// all.

#pragma once

#include <exception>

namespace tessera::engine {

inline constexpr int kInternalError = 1;
inline constexpr int kInputError = 2;

// That of a process which ends because of this: of a Stopped its own, kInputError for what a user
// or the machine did wrong (wrong input, not enough memory, an error of the system), else
// kInternalError.
[[nodiscard]] int exit_code_of(const std::exception& error);

}  // namespace tessera::engine
