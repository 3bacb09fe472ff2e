// What sessions tell their observers, on standard output and standard error.

#pragma once

#include <string>

#include "engine/session/session_observer.h"

namespace tessera::engine {

// One warning on standard error. Goes on where that cannot be written.
void print_warning(const std::string& sentence);

// Prints lines on standard output and warnings on standard error.
[[nodiscard]] const SessionObserver& printed_messages();

}  // namespace tessera::engine
