// Text on standard output.

#pragma once

#include <string>

namespace tessera::engine {

// Prints, and ignores that standard output cannot be written: training is worth more than what is
// printed about it.
void say(const std::string& text);

}  // namespace tessera::engine
