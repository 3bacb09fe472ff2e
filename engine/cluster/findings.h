// What is wrong with a cluster, judged by what was found out about it.

#pragma once

#include <string>
#include <vector>

#include "engine/cluster/examination.h"

namespace tessera::engine {

struct Finding {
  int device = -1;          // its place in the host file; -1: of all
  bool is_problem = false;  // training does not work, or not well; otherwise a warning
  std::string subject;      // a word for programs: "ssh", "clock"
  std::string what;         // a sentence without a full stop
  std::string remedy;       // likewise; may be a command
};

// In the order of devices.
[[nodiscard]] std::vector<Finding> findings_of(const Examination& examination);

// Why nothing can be copied to that device or started there by a remote shell; nothing where that
// works.
[[nodiscard]] std::vector<Finding> findings_of_shell(const Examination& examination, int device);

}  // namespace tessera::engine
