#include "engine/cli/messages.h"

#include <cstdio>

#include "engine/system/say.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

void print_warning(const std::string& sentence) {
  const std::string line = "tessera: warning: " + printable(sentence) + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

const SessionObserver& printed_messages() {
  static const SessionObserver observer{.lines = say, .warning = print_warning};
  return observer;
}

}  // namespace tessera::engine
