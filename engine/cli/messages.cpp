#include "engine/cli/messages.h"

#include <cstdio>
#include <fmt/format.h>

#include "engine/system/say.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

void print_warning(const std::string& sentence) {
  const std::string line = "tessera: warning: " + printable(sentence) + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

void print_findings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    fmt::print("\n{}: {}\n  remedy: {}\n",
               finding.is_problem ? "problem" : "warning",
               printable(finding.what),
               printable(finding.remedy));
  }
}

const SessionObserver& printed_messages() {
  static const SessionObserver observer{.lines = say, .warning = print_warning};
  return observer;
}

}  // namespace tessera::engine
