// Ends this rank where others have vanished: a cable that is out, a device without power, a process
// that is stopped. MPI would wait for them for ever. A thread tells the other ranks once a second
// that this one lives, however long it computes or reads, and listens to them.
//
// All ranks come to the same end by themselves, also those that nobody reaches any more: whoever
// hears nothing of another rank for the limit ends its process. The lowest rank among those that
// hear each other reports it first.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/attendance.h"
#include "engine/comm/communicator.h"

namespace tessera::engine {

// The exit code of a run that cannot go on because of other ranks: "try again later" of sysexits.h.
inline constexpr int kStalled = 75;

// Seconds of silence, where nobody says otherwise: a step may take longer, heartbeats do not.
inline constexpr double kUsualStallTimeout_s = 60;

struct Stall {
  double limit_s = 0;
  std::vector<int> silent;         // ranks; none where all live and wait for each other
  std::vector<int> living;         // the others, this one among them
  std::vector<std::string> hosts;  // of all ranks
};

// "pi3 (rank 2) has not answered for 60 s"
[[nodiscard]] std::string describe(const Stall& stall);

class Watchdog {
 public:
  // `report` is called in another thread, by one rank, shortly before all end with kStalled. All
  // ranks call this together, after they have exchanged messages. With one rank there is nothing to
  // watch.
  Watchdog(const Communicator& communicator,
           double limit_s,
           std::function<void(const Stall&)> report);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
};

}  // namespace tessera::engine
