// What refusals say.

#pragma once

#include <string>

#include "partitioner/base/errors.h"

namespace tessera::tests {

// What the InputError that `action` must throw says; other exceptions pass. Empty if it throws
// none.
template <class Action>
[[nodiscard]] std::string input_error_of(const Action& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

[[nodiscard]] inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tessera::tests
