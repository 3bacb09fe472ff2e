// MPI from start to end of the program. One lives in main; nothing else starts or ends MPI.
//
// Over TCP, MPI_Finalize of Debian's MPICH 4.0 may hang when all ranks are done, and it waits for
// ranks that have vanished: what to do then is the program's decision. The program `tessera` avoids
// the first by engine/ucx_disconnect.cpp.

#pragma once

#include <functional>
#include <string>

namespace tessera::engine {

class MpiSession {
 public:
  // Throws InputError where the program was started by another MPI's mpiexec, whose ranks would not
  // find each other. `on_late_finish` is called in another thread where the end of MPI takes longer
  // than kLongestFinish_s; it may end the process. None: it takes as long as it takes.
  MpiSession(int& argc, char**& argv, std::function<void()> on_late_finish = {});
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Whether several threads may call MPI at a time.
  [[nodiscard]] static bool threads_may_call();

  // Asks mpiexec to end the processes of all ranks, this one included: for a program whose rank met
  // an error that the others cannot know of. Waits for mpiexec, which may not answer any more.
  static void abort(int exit_code);

 private:
  std::function<void()> on_late_finish_;
};

// Longer than any of what a rank does last takes, short enough for who waits for it.
inline constexpr double kLongestFinish_s = 60;

// The number of this process among them, as mpiexec says: 0 without it. It needs no MPI.
[[nodiscard]] int rank_started();

// Ranks that mpiexec started, as it says: 1 without it. It needs no MPI.
[[nodiscard]] int ranks_started();

// Whether ranks run on several machines, as mpiexec says: the same on all of them. False where it
// says nothing.
[[nodiscard]] bool spans_machines();

// The MPI library that this process has loaded, as "MPICH 4.0.2 (ch4:ucx)". It needs no session.
[[nodiscard]] std::string mpi_library();

}  // namespace tessera::engine
