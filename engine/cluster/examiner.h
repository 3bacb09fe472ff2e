// The side of a device when a cluster is examined: answers questions at standard input, a line of
// JSON each, at standard output. It changes nothing on the device.

#pragma once

#include <string>

namespace tessera::engine {

// Until standard input ends. `version` is this program's.
void run_examiner(const std::string& version);

}  // namespace tessera::engine
