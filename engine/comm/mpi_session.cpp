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

MpiSession::MpiSession(int& argc, char**& argv) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads yet
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    throw partitioner::InputError(
        "this program is built with MPICH and was started by Open MPI's mpirun, under which each "
        "rank would be alone; "
        "start it with mpiexec.mpich");
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
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
