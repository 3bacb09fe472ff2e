// What replicas that may run ahead of each other exchange about their passes: parts of the loss,
// and whether one has a reason to stop. All learn it a fixed number of passes later, so that none
// waits for another that is no more than that behind, and all stop after the same pass.

#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/peers.h"
#include "engine/execution/loss_exchange.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class OutcomeRelay {
 public:
  // `passes` of a step, which is known `steps` later. `before`: the latest_losses() of a run that
  // this one goes on from. The communicator must outlive it.
  OutcomeRelay(const Communicator& communicator,
               std::vector<int> peers,
               Index passes,
               Index steps,
               std::vector<double> before = {});
  // Takes in what has been sent: all ranks end it together, unless an error does.
  ~OutcomeRelay();
  OutcomeRelay(const OutcomeRelay&) = delete;
  OutcomeRelay& operator=(const OutcomeRelay&) = delete;

  // `mine` is that of the next pass on this replica. Returns the sum of all replicas' outcomes of
  // the pass `steps` before it, or of the first step's, in their order; as PassOutcome has it. A
  // long problem is cut.
  [[nodiscard]] PassOutcome exchange(const PassOutcome& mine);

  // The losses of the latest steps that exchange() has not returned, each of all its passes, the
  // oldest first, as settle() has found them: what a run that goes on has to begin with, whatever
  // its passes are.
  [[nodiscard]] std::vector<double> latest_losses() const;

  // Waits for the outcomes of all passes so far. Returns the problem of the first one that has one
  // and that exchange() has not returned. All ranks call this together; exchange() goes on as
  // before.
  [[nodiscard]] std::optional<std::string> settle();

 private:
  struct Message {
    double loss = 0;
    int stop_signal = 0;
    int problem_size = -1;  // of its text; -1: none
    PassProblem::Kind problem_kind = PassProblem::Kind::Images;
    std::array<char, 1000> problem{};
  };
  // Messages to the others of one pass.
  struct Sent {
    Message message;
    Requests requests;
  };

  void send(const Message& message);
  void receive_next();
  [[nodiscard]] static PassOutcome sum(const std::vector<Message>& of_replicas);

  Peers peers_;
  Index passes_;
  Index delay_;
  Index told_ = 0;            // passes
  Index received_ = 0;        // of all others
  std::deque<Message> mine_;  // that are sent and whose others are not received
  std::deque<Sent> sent_;
  std::deque<PassOutcome> known_;      // the last ones that are received
  std::vector<PassOutcome> of_first_;  // of the first step's passes
  std::vector<double> before_;         // of steps of a run before
  std::vector<double> losses_;         // of the latest passes
};

}  // namespace tessera::engine
