// Work of rank 0 between messages that all ranks take part in.

#pragma once

#include <optional>
#include <string>

#include "engine/comm/agreement.h"

namespace tessera::engine {

// Runs `work` on rank 0 unless something went wrong there before. Tensors travel all the same:
// other ranks do not know.
class RootWork {
 public:
  explicit RootWork(const Communicator& communicator) : communicator_(communicator) {}

  template <class Work>
  void run(Work work) {
    if (communicator_.rank() == 0 && !problem_) {
      problem_ = problem_of(work);
    }
  }

  // Throws AgreedError on all ranks where something went wrong. All ranks call this together.
  void finish() { throw_agreed(communicator_, problem_); }

 private:
  const Communicator& communicator_;
  std::optional<std::string> problem_;
};

}  // namespace tessera::engine
