// What a session tells whoever started it, as it happens. The library prints nothing.

#pragma once

#include <functional>
#include <string>

#include "engine/comm/communicator.h"

namespace tessera::engine {

struct SessionObserver {
  // Whole lines that a user may want to read; called on rank 0. May be empty, may not throw.
  std::function<void(const std::string& lines)> lines = {};
  // A sentence about something that may not be meant, without a line break. Any thread of any rank
  // may call it. May be empty, may not throw.
  std::function<void(const std::string& sentence)> warning = {};

  void say(const std::string& text) const {
    if (lines) {
      lines(text);
    }
  }
  void warn(const std::string& text) const {
    if (warning) {
      warning(text);
    }
  }
  // Where all ranks know it alike: once, on rank 0.
  void warn(const std::string& text, const Communicator& communicator) const {
    if (communicator.rank() == 0) {
      warn(text);
    }
  }
};

}  // namespace tessera::engine
