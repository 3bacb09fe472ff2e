// Time that passes, and time that a processor spends.

#pragma once

namespace tessera::engine {

// Seconds since some fixed moment; never goes back.
[[nodiscard]] double now_s();

// Seconds since 1970 by the clock of this machine, which may be wrong and be set.
[[nodiscard]] double time_of_day_s();

// Seconds of a processor that this thread has used. Threads of operators are not counted: they may
// spin while they have nothing to do.
[[nodiscard]] double processor_s();

}  // namespace tessera::engine
