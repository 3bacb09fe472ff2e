#include "engine/system/stop_request.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <unistd.h>
#include <utility>

namespace tessera::engine {

namespace {

constexpr std::array<std::pair<int, const char*>, 3> kStopSignals{
    {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}}};

// One request can come twice: `timeout` signals its command and then the group that it is in.
constexpr std::uint32_t kSameRequestMs = 100;

// What handlers share with the rest of the program; a handler can be given nothing else.
std::atomic<void (*)(int)> end_at_once{nullptr};
std::atomic<int> orderly_stops{0};
std::atomic<const char*> notice{nullptr};
std::atomic<int> first_signal{0};
std::atomic<std::uint32_t> first_ms{0};
std::atomic<bool> one_is_enough{false};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

std::uint32_t now_ms() {
  std::timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(time.tv_sec) * 1000 +
                                    static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000);
}

extern "C" void on_stop_signal(int signal) {
  const int error = errno;
  int none = 0;
  if (orderly_stops.load() == 0) {
    end_at_once.load()(signal);
  }
  if (first_signal.compare_exchange_strong(none, signal)) {
    first_ms = now_ms();
    if (const char* const text = notice.load(); text != nullptr) {
      // Nothing can be done where it cannot be written.
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
    }
  } else if (!one_is_enough.load() && now_ms() - first_ms.load() > kSameRequestMs) {
    end_at_once.load()(signal);
  }
  errno = error;
}

}  // namespace

void take_stop_signals(void (*end)(int signal), bool hangup_ignored, bool repeats_ignored) {
  end_at_once = end;
  one_is_enough = repeats_ignored;
  for (const auto& [signal, name] : kStopSignals) {
    struct sigaction action {};
    action.sa_handler = signal == SIGHUP && hangup_ignored ? SIG_IGN : on_stop_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const auto& [other, other_name] : kStopSignals) {
      sigaddset(&action.sa_mask, other);
    }
    ::sigaction(signal, &action, nullptr);
  }
}

int stop_signal() {
  return first_signal.load();
}

void request_stop(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    first_ms = now_ms();
  }
}

std::string signal_name(int signal) {
  for (const auto& [number, name] : kStopSignals) {
    if (number == signal) {
      return name;
    }
  }
  return "signal " + std::to_string(signal);
}

OrderlyStop::OrderlyStop(const char* text) : outer_notice_(notice.load()) {
  if (text != nullptr) {
    notice = text;
  }
  ++orderly_stops;
}

OrderlyStop::~OrderlyStop() {
  notice = outer_notice_;
  --orderly_stops;
}

}  // namespace tessera::engine
