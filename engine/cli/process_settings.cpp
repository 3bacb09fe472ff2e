#include "engine/cli/process_settings.h"

#include <csignal>
#include <cstdlib>
#include <malloc.h>
#include <sys/prctl.h>

#include "engine/comm/mpi_session.h"

namespace tessera::engine {

namespace {

// Settings of UCX, MPICH's transport.
void settle_transport() {
  // NOLINTBEGIN(concurrency-mt-unsafe): no threads yet
  // Between machines. A large message normally waits for the consent of its receiver; what goes
  // both ways at once then crosses the wire one way after the other, since ranks nap between their
  // looks. Sending at once is faster there, and as receives are posted first, hardly anything has
  // to be kept in between. In the memory of one machine consent saves a copy.
  if (spans_machines()) {
    ::setenv("UCX_RNDV_THRESH", "inf", 0);
  }
  // What the kernel has taken to send goes first, whatever comes after it: by itself that grows to
  // megabytes, for which a halo or batch statistics would wait behind gradients.
  ::setenv("UCX_TCP_SNDBUF", "16k", 0);
  // NOLINTEND(concurrency-mt-unsafe)
}

// Large pictures are decoded by one thread after the other. By itself the allocator learns from
// what is freed to keep as much for each thread.
void give_back_freed_memory() {
  constexpr int kBytes = 4 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kBytes);
  ::mallopt(M_TRIM_THRESHOLD, kBytes);
}

// A rank whose launcher is gone, killed perhaps, has nobody left to speak to: it is asked to end.
// An agent has seen to that already, and kills it.
void end_with_parent() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads yet
  if (ranks_started() > 1 && std::getenv("TESSERA_AGENT_FD") == nullptr) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  }
}

}  // namespace

void settle_process() {
  settle_transport();
  give_back_freed_memory();
  end_with_parent();
}

}  // namespace tessera::engine
