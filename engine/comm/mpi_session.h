// MPI from start to end of the program. One lives in main; nothing else starts or ends MPI.
//
// Over TCP, MPI_Finalize of Debian's MPICH 4.0 may hang when all ranks are done: the session then
// ends the process after a minute. The program avoids it by engine/ucx_disconnect.cpp.

#pragma once

namespace tessera::engine {

class MpiSession {
 public:
  // Throws InputError where the program was started by another MPI's mpiexec, whose ranks would not
  // find each other.
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Whether several threads may call MPI at a time.
  [[nodiscard]] static bool threads_may_call();

  // Ends all ranks at once, for errors that one rank alone had and the others cannot know of.
  [[noreturn]] static void abort(int exit_code);
};

// The number of this process among them, as mpiexec says: 0 without it. It needs no MPI.
[[nodiscard]] int rank_started();

// Ranks that mpiexec started, as it says: 1 without it. It needs no MPI.
[[nodiscard]] int ranks_started();

// Whether ranks run on several machines, as mpiexec says: the same on all of them. False where it
// says nothing.
[[nodiscard]] bool spans_machines();

}  // namespace tessera::engine
