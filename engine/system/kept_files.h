// Files in memory in which ranks keep the state of the last step (see recovery), as far as the
// agent knows them that has their folder.

#pragma once

namespace tessera::engine {

// Their names end so.
inline constexpr const char* kKeptEnding = ".kept";

}  // namespace tessera::engine
