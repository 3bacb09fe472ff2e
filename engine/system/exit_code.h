// Exit codes of the program: engine/how-a-run-ends.md says when.

#pragma once

#include <csignal>
#include <exception>

namespace tessera::engine {

inline constexpr int kInternalError = 1;
inline constexpr int kInputError = 2;  // also that of a full disk
// Of `plan`: what is planned needs more memory than a profile or a limit allows.
inline constexpr int kDoesNotFit = 3;
// There is no going on without others, who have not answered or have the run: "try again later" of
// sysexits.h.
inline constexpr int kOthersMissing = 75;
// Of a process that a signal has ended, or asked to end: this, and the signal.
inline constexpr int kSignalled = 128;
// A rank that was asked to pause has ended after a whole step, with its state kept.
inline constexpr int kPaused = kSignalled + SIGUSR1;

// That of a process which ends because of this: of a Stopped its own, kInputError for what a user
// or the machine did wrong (wrong input, not enough memory, an error of the system), else
// kInternalError.
[[nodiscard]] int exit_code_of(const std::exception& error);

}  // namespace tessera::engine
