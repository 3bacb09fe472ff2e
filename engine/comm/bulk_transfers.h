// Large messages that nobody waits for yet. They cross the wire while kernels compute, in chunks, a
// few under way at a time: a message that somebody does wait for, such as a halo or batch
// statistics, takes the same connection and has to get between two chunks.
//
// MPI moves nothing unless it is called, so a thread of its own progresses the chunks, with naps
// between looks, and makes MPI move all else that is under way: see ProgressGuard. It sleeps where
// nothing is, and while wait() looks itself. With one rank there is no thread, nor where MPI does
// not let two threads call it: then wait() does all of it. In the memory of one machine there is no
// wire to share, and a thread would only take time from kernels: there messages go whole, and
// wait() does all of it, too.

#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "engine/comm/communicator.h"
#include "engine/comm/mpi_session.h"
#include "engine/comm/tags.h"

namespace tessera::engine {

class BulkTransfers {
 public:
  // Messages that are waited for together. Their memory must stay until then.
  class Batch {
    friend class BulkTransfers;
    int under_way_ = 0;
  };

  // `by_wire`: in chunks and by a thread; the same on all ranks. The communicator must outlive it.
  explicit BulkTransfers(const Communicator& communicator, bool by_wire = spans_machines());
  // What is still under way never ends: only for the end of a program that an error stops.
  ~BulkTransfers();
  BulkTransfers(const BulkTransfers&) = delete;
  BulkTransfers& operator=(const BulkTransfers&) = delete;

  // From one rank to another messages are sent and received in the order in which they are posted,
  // which must be the same on both.
  void post_receive(Batch& batch, int from, std::span<std::byte> bytes);
  void post_send(Batch& batch, int to, std::span<const std::byte> bytes);

  // Until all of the batch has come and gone.
  void wait(Batch& batch);

  // Whether there is a thread to move messages while kernels compute.
  [[nodiscard]] bool progresses() const;

 private:
  friend class ProgressGuard;
  struct State;
  std::unique_ptr<State> state_;
};

// While it lives, messages move that others have posted, such as halos: for who computes meanwhile.
class ProgressGuard {
 public:
  explicit ProgressGuard(BulkTransfers& transfers);
  ~ProgressGuard();
  ProgressGuard(ProgressGuard&& other) noexcept;
  ProgressGuard(const ProgressGuard&) = delete;
  ProgressGuard& operator=(const ProgressGuard&) = delete;
  ProgressGuard& operator=(ProgressGuard&&) = delete;

 private:
  BulkTransfers* transfers_;
};

}  // namespace tessera::engine
