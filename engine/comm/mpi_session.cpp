#include "engine/comm/mpi_session.h"

#include <cstdlib>
#include <unistd.h>

#include <mpi.h>

#include "engine/comm/communicator.h"
#include "engine/comm/mailbox.h"
#include "engine/comm/time_limit.h"
#include "engine/comm/watchdog.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// The value of a variable of mpiexec's; `alone` where the program was started without it.
int started(const char* name, int alone = 1) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads yet
  return text == nullptr ? alone : std::atoi(text);
}

// Longer than any of what a rank does last takes, short enough for who waits for it.
constexpr double kLongestFinish_s = 60;
constexpr double kLongestAbort_s = 3;

}  // namespace

int rank_started() {
  return started("PMI_RANK", 0);
}

int ranks_started() {
  return started("PMI_SIZE");
}

bool spans_machines() {
  return ranks_started() > started("MPI_LOCALNRANKS");
}

MpiSession::MpiSession(int& argc, char**& argv) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads yet
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    throw InputError(
        "this program is built with MPICH and was started by Open MPI's mpirun, under which each "
        "rank would be alone; "
        "start it with mpiexec.mpich");
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
}

MpiSession::~MpiSession() {
  // Another rank may have vanished; and MPI_Finalize has been seen to hang.
  const TimeLimit limit(kLongestFinish_s, [] { ::_exit(kStalled); });
  Communicator::world().barrier();
  discard_letters();
  MPI_Finalize();
}

bool MpiSession::threads_may_call() {
  int provided = 0;
  MPI_Query_thread(&provided);
  return provided == MPI_THREAD_MULTIPLE;
}

void MpiSession::abort(int exit_code) {
  // It waits for mpiexec, which may not answer any more.
  const TimeLimit limit(kLongestAbort_s, [exit_code] { ::_exit(exit_code); });
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

}  // namespace tessera::engine
