#include <csignal>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "engine/cli/cli.h"
#include "engine/processes/child_process.h"
#include "engine/supervisor/agent_line.h"
#include "engine/system/stop_request.h"

namespace {

// Whether the parent process had SIGHUP ignored, as nohup does. UCX, which MPICH brings along,
// takes that signal when it is loaded, before main(): this runs before the libraries' own.
bool hangup_ignored = false;

void look_at_hangup(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  struct sigaction action {};
  ::sigaction(SIGHUP, nullptr, &action);
  hangup_ignored = action.sa_handler == SIG_IGN;
}

[[gnu::section(".preinit_array"),
  gnu::used]] void (*const first_of_all)(int, char**, char**) = look_at_hangup;

// Threads that have nothing to do are to sleep soon, so that they leave the processor to other
// ranks while this one waits for messages, but not between two loops of a step: to wake one takes
// longer than many of them. OpenMP's library reads how long to spin when it is loaded, before
// main(), and cannot be told later: so the program starts itself once more.
void spin_briefly(char** argv) {
  // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr) {
    ::setenv("GOMP_SPINCOUNT", "10000", 0);
    const std::string program = tessera::engine::program_path();
    if (hangup_ignored) {
      std::signal(SIGHUP, SIG_IGN);  // a handler would not outlive this
    }
    ::execv(program.c_str(),
            argv);  // returns where that is not to be found: then threads spin longer
  }
  // NOLINTEND(concurrency-mt-unsafe)
}

// As a shell reports a program that a signal ended.
void end_at_once(int signal) {
  ::_exit(128 + signal);
}

}  // namespace

int main(int argc, char** argv) {
  spin_briefly(argv);
  tessera::engine::take_stop_signals(end_at_once, hangup_ignored, tessera::engine::has_agent());
  return tessera::engine::run_program(argc, argv);
}
