// What the program sets for its own process before MPI starts. A library must not do this to the
// program that calls it.

#pragma once

namespace tessera::engine {

// Environment variables of MPICH and UCX that the user has not set, how much freed memory the
// allocator keeps, and the signal that this process gets when its launcher ends. Call it while
// there is one thread.
void settle_process();

}  // namespace tessera::engine
