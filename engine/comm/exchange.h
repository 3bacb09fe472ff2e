// A list of messages in execution: forward copies cells from those who own them to those who
// require them, backward sends the gradients of those cells the other way and adds. Packed cells
// are in (N, C, H, W) order, whatever the blocks of the views.
//
// Each direction is started and finished separately. Starting posts all receives before anything is
// packed; what arrives is copied as it comes, but added in rank order, so that sums have the same
// bits on every run.
//
// Given the transfers of an execution, messages move while kernels compute between start and
// finish, and a rank that has what it wants does not wait until its own messages have left.

#pragma once

#include <optional>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/comm/bulk_transfers.h"
#include "engine/comm/communicator.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

template <class T>
class Exchange {
 public:
  // Keeps what concerns the communicator's own rank of `messages`, which are sorted by receiver,
  // then sender. `tag` must be different from that of any other exchange that is under way at the
  // same time; tag + 1 is used too. `transfers` must outlive it.
  Exchange(const Communicator& communicator,
           const std::vector<partitioner::Message>& messages,
           int tag,
           BulkTransfers* transfers = nullptr);

  void start_copy(View<const T> owned);
  void finish_copy(View<T> required);  // assigns

  // Sends what `required` holds on the messages' regions and sets it to 0 there.
  void start_add(View<T> required);
  void finish_add(View<T> owned);  // adds

  // What a finish has left under way: a look, without waiting, whether it has left by now; and
  // waiting for it. The next start does so, too.
  void progress_sends();
  void finish_sends();

  // The size of buffers for packed cells.
  [[nodiscard]] Index bytes() const;
  [[nodiscard]] bool empty() const {
    return incoming_.empty() && outgoing_.empty() && local_.empty();
  }

 private:
  struct Parcel {
    int peer = 0;
    Region region;
    Array<T> cells;
  };

  void begin();
  void end();

  const Communicator* communicator_;
  int tag_;
  BulkTransfers* transfers_;
  bool is_started_ = false;       // and not finished
  std::vector<Parcel> incoming_;  // forward direction, by sender
  std::vector<Parcel> outgoing_;  // by receiver
  std::vector<Parcel> local_;     // from a buffer of this rank to another of this rank
  Requests receives_;
  Requests sends_;
  std::optional<ProgressGuard> progress_;  // while messages are under way
};

// One-off: copies cells from owners to those who require them, all at once. All ranks call this
// together.
template <class T>
void regrid(const Communicator& communicator,
            const std::vector<partitioner::Message>& messages,
            View<const T> owned,
            View<T> required);

}  // namespace tessera::engine
