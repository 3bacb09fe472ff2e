// Notices where other ranks have vanished: a cable that is out, a device without power, a process
// that is stopped. MPI would wait for them for ever. A thread tells the other ranks once a second
// that this one lives, however long it computes or reads, and listens to them.
//
// All ranks come to the same finding by themselves, also those that nobody reaches any more:
// whoever hears nothing of another rank for the limit. What it does then is the program's decision;
// as the thread that waits inside MPI does not come back, it will hardly be anything but to end.

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

// Seconds of silence, where nobody says otherwise: a step may take longer, heartbeats do not.
inline constexpr double kUsualStallTimeout_s = 60;

struct Stall {
  double limit_s = 0;
  std::vector<int> silent;         // ranks; none where all live and wait for each other
  std::vector<int> living;         // the others, this one among them
  std::vector<std::string> hosts;  // of all ranks
  bool reports = false;            // this rank, the lowest of the living, speaks for them
  bool is_deputy = false;          // it is the next one, and does where the lowest has not
  double grace_s = 0;  // in which all others find out: mpiexec ends all when one ends before
};

// "pi3 (rank 2) has not answered for 60 s"
[[nodiscard]] std::string describe(const Stall& stall);

// "pi3 (rank 2) answers again after 12 s of silence"
[[nodiscard]] std::string describe(const Returns::Return& back,
                                   const std::vector<std::string>& hosts);

class Watchdog {
 public:
  // `on_stall` is called once, in another thread, on each rank that finds out; when it returns
  // nobody watches any more. `on_return`, which may be empty, is told on rank 0 in the same way,
  // each time, that ranks are back that were silent for several heartbeats. All ranks call this
  // together, after they have exchanged messages. With one rank there is nothing to watch.
  Watchdog(const Communicator& communicator,
           double limit_s,
           std::function<void(const Stall&)> on_stall,
           std::function<void(const std::string& what)> on_return = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
};

}  // namespace tessera::engine
