#include "engine/comm/mpi_session.h"

#include <csignal>
#include <cstdlib>
#include <sys/prctl.h>
#include <unistd.h>

#include <mpi.h>

#include "engine/comm/communicator.h"
#include "engine/comm/time_limit.h"
#include "engine/comm/watchdog.h"
#include "partitioner/base/errors.h"

// Debian's MPICH 4.0 hangs in MPI_Finalize over TCP: ranks wait for each other inside UCX while it
// closes its connections. The process is about to end and the kernel closes them anyway, so UCX's
// own disconnect is replaced by nothing; what MPICH does with the null it gets back is to go on.
// The barrier in ~MpiSession makes sure that no data is under way.
extern "C" [[gnu::visibility("default")]] void* ucp_disconnect_nb(void* endpoint);
void* ucp_disconnect_nb(void* /*endpoint*/) {
  return nullptr;
}

namespace tessera::engine {

namespace {

// Of a variable of mpiexec's; `alone` where the program was started without it.
int started(const char* name, int alone = 1) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads yet
  return text == nullptr ? alone : std::atoi(text);
}

// Longer than any of what a rank does last takes, short enough for who waits for it.
constexpr double kLongestFinish_s = 60;
constexpr double kLongestAbort_s = 3;

// Settings of UCX, MPICH's transport, that the user has not made.
void settle_transport() {
  // NOLINTBEGIN(concurrency-mt-unsafe): no threads yet
  // Between machines. A large message normally waits for the consent of its receiver; what goes
  // both ways at once then crosses the wire one way after the other, since ranks nap between their
  // looks. Sending at once is faster there, and as receives are posted first, hardly anything has
  // to be kept in between. In the memory of one machine consent saves a copy.
  if (spans_machines()) {
    setenv("UCX_RNDV_THRESH", "inf", 0);
  }
  // What the kernel has taken to send goes first, whatever comes after it: by itself that grows to
  // megabytes, for which a halo or sums of batch normalisation would wait behind gradients.
  setenv("UCX_TCP_SNDBUF", "16k", 0);
  // NOLINTEND(concurrency-mt-unsafe)
}

// A rank whose launcher is gone, killed perhaps, has nobody left to speak to: it is asked to end.
void end_with_parent() {
  if (ranks_started() > 1) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  }
}

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
    throw partitioner::InputError(
        "this program is built with MPICH and was started by Open MPI's mpirun, under which each "
        "rank would be alone; "
        "start it with mpiexec.mpich");
  }
  settle_transport();
  end_with_parent();
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
}

MpiSession::~MpiSession() {
  // Another rank may have vanished; and MPI_Finalize has been seen to hang.
  const TimeLimit limit(kLongestFinish_s, [] { ::_exit(kStalled); });
  Communicator::world().barrier();
  MPI_Finalize();
}

void MpiSession::abort(int exit_code) {
  // It waits for mpiexec, which may not answer any more.
  const TimeLimit limit(kLongestAbort_s, [exit_code] { ::_exit(exit_code); });
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

}  // namespace tessera::engine
