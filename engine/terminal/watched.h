// Whether a person watches what this process prints. mpiexec gives its ranks pipes and copies what
// comes out of them to its own standard output: where that is a terminal, on this machine, a
// person sees it all the same.

#pragma once

#include <optional>

namespace tessera::engine {

// The columns of the terminal where standard output ends up; nothing where it is a file or a pipe
// of the user's, or where mpiexec runs on another machine.
[[nodiscard]] std::optional<int> watched_columns();

}  // namespace tessera::engine
