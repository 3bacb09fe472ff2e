#include "engine/comm/mpi_session.h"

#include <cstdlib>

#include <mpi.h>

#include "engine/comm/communicator.h"
#include "partitioner/errors.h"

// Debian's MPICH 4.0 hangs in MPI_Finalize over TCP: ranks wait for each other inside UCX while it
// closes its connections. The process is about to end and the kernel closes them anyway, so UCX's
// own disconnect is replaced by nothing; what MPICH does with the null it gets back is to go on.
// The barrier in ~MpiSession makes sure that no data is under way.
extern "C" [[gnu::visibility("default")]] void* ucp_disconnect_nb(void* endpoint);
void* ucp_disconnect_nb(void* /*endpoint*/) {
  return nullptr;
}

namespace engine {

namespace {

// Of a variable of mpiexec's; 1 where the program was started without it.
int started(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads yet
  return text == nullptr ? 1 : std::atoi(text);
}

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

}  // namespace

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
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
}

MpiSession::~MpiSession() {
  Communicator::world().barrier();
  MPI_Finalize();
}

void MpiSession::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

}  // namespace engine
