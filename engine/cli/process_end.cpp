#include "engine/cli/process_end.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "engine/comm/mpi_session.h"
#include "engine/comm/time_limit.h"
#include "engine/processes/launcher.h"
#include "engine/system/clock.h"
#include "engine/system/exit_code.h"

namespace tessera::engine {

namespace {

// The process ends within these seconds even where what it does last does not return, such as
// writing to a pipe that nobody reads.
void end_within(unsigned seconds) {
  std::signal(SIGALRM, [](int) { ::_exit(kOthersMissing); });
  ::alarm(seconds);
}

// mpiexec ends all at the first word of an abort, and what it has not read of a pipe by then is
// lost: a busy machine lets it read both at once.
void wait_until_read(int pipe) {
  constexpr double kLongest_s = 2;
  const double end_s = now_s() + kLongest_s;
  struct stat kind = {};
  int unread = 0;
  if (::fstat(pipe, &kind) != 0 || !S_ISFIFO(kind.st_mode)) {  // of others it says something else
    return;
  }
  while (::ioctl(pipe, FIONREAD, &unread) == 0 && unread > 0 && now_s() < end_s) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

void end_all_ranks(int exit_code) {
  constexpr double kLongestAbort_s = 3;
  wait_until_read(STDERR_FILENO);
  // Our own line has said why. MPICH can be told to leave out its own, but then mpiexec of
  // MPICH 4.2 takes the empty text for a malformed command, fails, and loses the exit code and our
  // line.
  ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
  const TimeLimit limit(kLongestAbort_s, [exit_code] { ::_exit(exit_code); });
  MpiSession::abort(exit_code);
  ::_exit(exit_code);
}

void end_stalled(const Stall& stall, int launcher, const std::function<void()>& report) {
  // The end of any rank makes mpiexec end the others: the one that reports comes first. Whoever
  // lives for longer has not been ended. Perhaps nobody was: the lowest rank may be on a machine
  // that is too busy, or be stopped itself meanwhile. Then the second one reports before the rest
  // ends.
  const double wait_s = stall.grace_s * (stall.reports ? 0 : stall.is_deputy ? 2 : 3);
  end_within(static_cast<unsigned>(wait_s) + 6);
  std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));
  if (stall.reports || stall.is_deputy) {
    report();
  }
  end_launcher_after(launcher);
  end_all_ranks(kOthersMissing);  // by MPI, so that mpiexec learns the exit code
}

}  // namespace tessera::engine
