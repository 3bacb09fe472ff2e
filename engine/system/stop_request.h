// Signals that ask the program to end: Ctrl-C (SIGINT), SIGTERM, and SIGHUP of a terminal that
// closes. A program that has taken them says how it ends at once. While an OrderlyStop lives the
// first one is only noted: who works on something worth saving looks at stop_signal() where it can
// stop, tells the other ranks, and throws Stopped on all of them. A second one ends the program at
// once.

#pragma once

#include <csignal>
#include <stdexcept>
#include <string>

namespace tessera::engine {

// Called once, by a program, before other threads exist. `end_at_once` is called by the handler of
// a signal, so it may only call what signal handlers may, such as _exit(); it does not return.
// SIGHUP is ignored where the parent process had it so, as nohup does: the caller knows, since by
// then libraries may have made it their own. Without this call signals do what they did before.
// `repeats_ignored`: a second signal does nothing, as one request may come by several ways; whoever
// has started the process ends it.
void take_stop_signals(void (*end_at_once)(int signal), bool hangup_ignored, bool repeats_ignored);

// The first signal that came while an OrderlyStop lived; 0: none.
[[nodiscard]] int stop_signal();

// What an agent asks for by it: an end after this step, of which nothing has to be saved.
inline constexpr int kPauseSignal = SIGUSR1;

// The same as if that signal had come while an OrderlyStop lives; for another thread.
void request_stop(int signal);

// "SIGINT"
[[nodiscard]] std::string signal_name(int signal);

class OrderlyStop {
 public:
  // `notice` is written to standard error when the first signal comes, by the handler itself; null:
  // nothing. It must outlive this.
  explicit OrderlyStop(const char* notice = nullptr);
  ~OrderlyStop();
  OrderlyStop(const OrderlyStop&) = delete;
  OrderlyStop& operator=(const OrderlyStop&) = delete;

 private:
  const char* outer_notice_;
};

// Work was left because of a signal: thrown on all ranks at the same place, so that all end in
// order, with exit code 128 + signal.
class Stopped : public std::runtime_error {
 public:
  Stopped(int signal, const std::string& what) : std::runtime_error(what), signal_(signal) {}
  explicit Stopped(int signal) : Stopped(signal, "stopped by " + signal_name(signal)) {}

  [[nodiscard]] int signal() const { return signal_; }
  [[nodiscard]] int exit_code() const { return 128 + signal_; }

 private:
  int signal_;
};

}  // namespace tessera::engine
