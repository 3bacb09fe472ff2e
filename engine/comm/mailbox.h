// Short messages to rank 0 that nobody waits for, between all other messages and on the same
// connections: what a rank says of itself now and then. They are sent and taken by a thread of each
// rank, at any time.
//
// None delays who posts it: where letters do not leave, as on a connection that is cut, further
// ones are dropped.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/comm/communicator.h"

namespace tessera::engine {

// For one thread at a time.
class Mailbox {
 public:
  struct Letter {
    int from = 0;  // rank
    std::vector<std::byte> bytes;
  };

  // All ranks call this together.
  explicit Mailbox(const Communicator& communicator);
  // Gives what has not left a second to do so.
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Sends to rank 0; from rank 0, to itself. False where the letter is dropped: too many have not
  // left, or MPI does not let several threads call it.
  bool post(std::span<const std::byte> bytes);

  // Rank 0's: what has come, in order of arrival. Never waits; nothing on other ranks.
  [[nodiscard]] std::vector<Letter> take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Takes in letters that came when their mailbox was gone, so that MPI ends in order.
void discard_letters();

}  // namespace tessera::engine
