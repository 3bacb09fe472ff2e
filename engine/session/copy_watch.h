// Compares the copies that ranks have of parameters now and then while a run takes steps, and finds
// the words for the first that differ.

#pragma once

#include <optional>
#include <string>

#include "engine/train/verifying/copy_equality.h"

namespace tessera::engine {

class CopyWatch {
 public:
  // After a step, `last` is that of the run: a sentence where this comparison has found copies that
  // differ. Once they do, nothing is compared any more. All ranks of the execution call this
  // together, or of independent replicas those of each, and learn the same.
  [[nodiscard]] std::optional<std::string> look(Execution<float>& execution,
                                                Index step,
                                                Index last);

  // What has been found so far, by this rank or its replica.
  [[nodiscard]] const std::optional<std::string>& found() const { return found_; }

 private:
  std::optional<std::string> found_;
};

}  // namespace tessera::engine
