#include "engine/cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "engine/cli/agent_command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/process_end.h"
#include "engine/cli/process_settings.h"
#include "engine/cli/program.h"
#include "engine/cli/stall_report.h"
#include "engine/comm/agreement.h"
#include "engine/comm/mpi_session.h"
#include "engine/comm/patience.h"
#include "engine/comm/rank_equality.h"
#include "engine/comm/time_limit.h"
#include "engine/comm/watchdog.h"
#include "engine/ops/loops/threads.h"
#include "engine/ops/simd/block_kernels.h"
#include "engine/processes/launcher.h"
#include "engine/system/exit_code.h"
#include "engine/system/host_name.h"
#include "engine/system/limits.h"
#include "engine/system/stop_request.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

// On standard error; where that cannot be written either, the exit code alone says it.
void complain(const std::string& text) {
  const std::string line = "tessera: " + text + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

// Whether what was printed had a reader who has gone away, as `head` does: no error of anybody's.
bool reader_has_gone(const std::system_error& error) {
  return std::ferror(stdout) != 0 && error.code() == std::errc::broken_pipe;
}

// Says what went wrong, in one line, and returns the exit code that belongs to it.
int report(const std::exception& error) {
  if (dynamic_cast<const InputError*>(&error) != nullptr ||
      dynamic_cast<const Stopped*>(&error) != nullptr) {
    complain(error.what());
    return exit_code_of(error);
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    const std::string limits = tight_limits();
    complain(fmt::format(
        "there is not enough memory{}: use fewer images at a time (--batch, --subdivisions) or "
        "more ranks; `tessera plan` says what each needs",
        limits.empty() ? "" : fmt::format(" ({})", limits)));
    return exit_code_of(error);
  }
  if (const auto* failure = dynamic_cast<const std::system_error*>(&error)) {
    if (reader_has_gone(*failure)) {
      return 0;
    }
    if (failure->code() == std::errc::resource_unavailable_try_again) {
      const std::string limits = thread_limits();
      complain(printable(fmt::format("{}: no more threads can be started{}{}",
                                     rank_on(rank_started(), host_name()),
                                     limits.empty() ? "" : ": ",
                                     limits)));
      return exit_code_of(error);
    }
    const char* where = std::ferror(stdout) != 0 ? "standard output: " : "";
    complain(where + printable(error.what()));
    return exit_code_of(error);
  }
  complain("internal error: " + printable(error.what()));
  return exit_code_of(error);
}

// What was printed may still be on its way to a disk that is full, or to a reader who has gone
// away.
int finish_output(int exit_code) {
  errno = 0;
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!failed || exit_code != 0 || errno == EPIPE) {
    return exit_code;
  }
  complain("standard output: not everything could be written; is its disk full?");
  return kInputError;
}

// The rank that mpiexec gave this process, without asking MPI: what is the same on all ranks is
// said by one.
bool speaks() {
  const char* rank = std::getenv("PMI_RANK");  // NOLINT(concurrency-mt-unsafe): no threads yet
  return rank == nullptr || std::string_view(rank) == "0";
}

// Seconds in which all ranks must have started. What is wrong with one of them is wrong for all,
// and mpiexec ends the others with the first: the lowest rank comes first.
double start_timeout_s() {
  constexpr double kUsual_s = 30;
  constexpr double kBetweenRanks_s = 0.1;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads yet
  const char* const text = std::getenv("TESSERA_START_TIMEOUT");
  const double given = text == nullptr ? 0 : std::atof(text);
  return (given > 0 ? given : kUsual_s) + kBetweenRanks_s * rank_started();
}

void give_up_start() {
  fmt::print(stderr,
             "tessera: {}: not all {} ranks have started: is the program at the same path on every "
             "machine, and can all reach each other? (TESSERA_START_TIMEOUT=SECONDS gives slow "
             "machines more time)\n",
             rank_on(rank_started(), host_name()),
             ranks_started());
  end_launcher_after(launcher_process());
  ::_exit(kOthersMissing);
}

// How the program was started.
struct ProgramStart {
  int argc = 0;
  char** argv = nullptr;
  CommandLine line;
};

// That OpenMP will have its threads on all ranks.
void expect_threads(const Communicator& world) {
  std::optional<std::string> problem = problem_of([] { expect_startable_threads(threads()); });
  if (problem) {
    problem = fmt::format("{}: {}", rank_on(world.rank(), host_name()), *problem);
  }
  throw_agreed(world, problem);
}

// Runs work on all ranks, once they agree that it is what all of them were started for. An
// AgreedError is one on all of them, so each may end in order; anything else may be this rank's
// alone, so it takes the others down with it.
int run_together(ProgramStart& start, const std::function<int(const Communicator&)>& work) {
  settle_process();
  Pulse pulse;
  std::optional<MpiSession> session;
  Communicator world;
  try {
    std::optional<TimeLimit> starting;
    if (ranks_started() > 1) {
      starting.emplace(start_timeout_s(), give_up_start);
    }
    session.emplace(start.argc, start.argv, [] { ::_exit(kOthersMissing); });
    world = Communicator::world(&pulse);
    try {
      expect_same_start(start.line, world);
      starting.reset();
      throw_agreed(world, problem_of(expect_known_vectors));
      return work(world);
    } catch (const AgreedError& error) {
      return world.rank() == 0 ? report(error) : kInputError;
    } catch (const Stopped& stopped) {
      if (world.rank() == 0 && stopped.signal() != kPauseSignal) {
        fmt::print(stderr, "tessera: {}\n", stopped.what());
      }
      return stopped.exit_code();
    }
  } catch (const std::exception& error) {
    const int exit_code = report(error);
    if (world.size() > 1) {
      end_all_ranks(exit_code);
    }
    return exit_code;
  }
}

// For work that needs no other ranks. Where there are some all the same, rank 0 does it; that they
// agree comes first, since one that was started for something else would wait for the others.
int run_alone(ProgramStart& start, const std::function<void()>& work) {
  if (ranks_started() > 1) {
    const int exit_code = run_together(start, [](const Communicator& /*world*/) { return 0; });
    if (exit_code != 0 || !speaks()) {
      return exit_code;
    }
  }
  try {
    expect_known_vectors();
    work();
    return 0;
  } catch (const std::exception& error) {
    return report(error);
  }
}

// The command that the command line names.
const CommandRow& given_row(const CLI::App& program) {
  const std::string name = program.get_subcommands().front()->get_name();
  return *std::find_if(command_rows().begin(), command_rows().end(), [&](const CommandRow& row) {
    return row.name == name;
  });
}

int run_command(const CLI::App& program, const Commands& commands, ProgramStart& start) {
  if (!start.line.problem.empty()) {
    return run_alone(start, [&] { throw InputError(start.line.problem); });
  }
  if (!start.line.answer.empty()) {
    return run_alone(start, [&] { fmt::print("{}", start.line.answer); });
  }
  const CommandRow& command = given_row(program);
  if (!command.run_together || (command.run_alone && commands.of<ChooseCommand>().dry_run)) {
    int exit_code = 0;  // as far as a rank knows that does nothing
    const int problem = run_alone(start, [&] { exit_code = command.run_alone(commands); });
    return problem != 0 ? problem : exit_code;
  }
  return run_together(start, [&](const Communicator& world) {
    throw_agreed(world, problem_of(expect_usable_threads));
    share_processors(world.ranks_on_this_machine());
    expect_threads(world);
    if (!command.watched) {
      return command.run_together(commands, world);
    }
    const Watchdog watchdog = watch(world, commands.stall_timeout_s);
    return command.run_together(commands, world);
  });
}

// A file that is opened takes the first free number: where standard output was closed, what is
// printed would go into it. What stands there instead can be opened, but neither read nor written.
void fill_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) < 0) {
      (void)::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

// Not part of run_program(): what it has on the stack is not to be there before limits are known.
[[gnu::noinline]] int run_usual_program(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error to report, not a reason to die
  std::signal(SIGPIPE, SIG_IGN);  // nor is a reader who has gone away
  if (is_agent(argc, argv)) {
    return run_agent_command(argc, argv);
  }
  CLI::App program("", "tessera");
  Commands commands;
  set_up_program(program, commands);
  const HelpPages help(program);
  ProgramStart start{argc, argv, read_command_line(program, help, argc, argv)};
  const int exit_code = run_command(program, commands, start);
  // What counts of training is its files, not what it printed.
  const bool chooses = program.got_subcommand("choose") && !commands.of<ChooseCommand>().dry_run;
  const bool trains = (program.got_subcommand("train") || chooses) && start.line.answer.empty();
  return trains ? exit_code : finish_output(exit_code);
}

}  // namespace

int run_program(int argc, char** argv) {
  fill_standard_streams();
  try {
    expect_enough_for_any_program();
  } catch (const InputError& error) {
    return report(error);
  }
  return run_usual_program(argc, argv);
}

}  // namespace tessera::engine
