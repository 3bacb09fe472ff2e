// Whether a process that trains gets on with anything, while nothing says how long that takes:
// pictures are listed and read, a partition is searched, a state is restored. A process that hangs,
// since its disk does not answer or its threads wait for each other, uses no processor time, reads
// and writes nothing, and does not wait for messages either.

#pragma once

#include <cstdint>
#include <limits>

#include "partitioner/base/region.h"

namespace tessera::engine {

// How a rank waits for messages of others: see comm/patience.h.
struct WaitsOfRank {
  bool waiting = false;
  std::uint32_t ended = 0;  // waits so far, each by a message that came
};

// By a kernel that does not count them; nothing is stuck then.
inline constexpr Index kUnknownBytes = -1;

struct WorkSoFar {
  double processor_s = 0;
  Index bytes = 0;  // read and written
  WaitsOfRank waits = {};
};

// Of this process, but for the processor time of the calling thread.
[[nodiscard]] WorkSoFar work_so_far(const WaitsOfRank& waits);

enum class SignOfWork {
  None,
  Works,
  Stuck  // it has neither worked nor waited for long, said again after as long
};

// Threads of the background use a little processor time, and read a little, always: what counts is
// more than they take in minutes, and less than a slow disk yields in them.
class WorkWatch {
 public:
  // Looks at what has been done since the last call, some tenths of a second ago. Waiting takes
  // processor time as well, which does not count.
  [[nodiscard]] SignOfWork add(const WorkSoFar& now, double now_s);

 private:
  WorkSoFar before_;
  double processor_s_ = 0;  // since it was last said that there is work
  Index bytes_ = 0;
  bool works_ = true;                                        // to be said
  double worked_s_ = std::numeric_limits<double>::lowest();  // when it was last said
  double stuck_since_s_ = 0;
};

}  // namespace tessera::engine
