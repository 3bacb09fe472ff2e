#include "engine/comm/watchdog.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <utility>

#include "engine/comm/heartbeat_socket.h"
#include "engine/comm/patience.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/system/clock.h"

namespace tessera::engine {

namespace {

// All ranks live and wait for each other: a connection that was cut and is tried again ever more
// rarely comes back within twice the time that it was cut; this is well beyond.
constexpr double kStuckLimits = 10;

// So many heartbeats in a row are not lost by chance.
constexpr double kSilentIntervals = 5;

// A second; more among many ranks, so that a device takes in a few a second; less for a short
// limit.
double interval_s(double limit_s, int ranks) {
  constexpr double kRanksEachSecond = 16;
  constexpr double kIntervalsInLimit = 6;
  const double usual = std::max(1.0, ranks / kRanksEachSecond);
  return std::min(usual, limit_s / kIntervalsInLimit);
}

// "pi2 (rank 1), pi3 (rank 2)"
std::string named(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (const int rank : ranks) {
    names.push_back(fmt::format("{} (rank {})", hosts[static_cast<std::size_t>(rank)], rank));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string describe(const Stall& stall) {
  if (stall.silent.empty()) {
    return fmt::format("all ranks have waited for each other for {:.0f} s, and no message arrived",
                       kStuckLimits * stall.limit_s);
  }
  return fmt::format("{} {} not answered for {:g} s",
                     named(stall.silent, stall.hosts),
                     stall.silent.size() == 1 ? "has" : "have",
                     stall.limit_s);
}

std::string describe(const Returns::Return& back, const std::vector<std::string>& hosts) {
  return fmt::format("{} {} again after {:.0f} s of silence",
                     named(back.ranks, hosts),
                     back.ranks.size() == 1 ? "answers" : "answer",
                     back.silent_s);
}

class Watchdog::Listener {
 public:
  Listener(const Communicator& communicator,
           double limit_s,
           std::function<void(const Stall&)> on_stall,
           std::function<void(const std::string&)> on_return)
      : socket_(communicator),
        attendance_(communicator.size(), communicator.rank(), now_s()),
        rank_(communicator.rank()),
        hosts_(hosts_of_ranks(communicator)),
        pulse_(communicator.pulse()),
        limit_s_(limit_s),
        interval_s_(interval_s(limit_s, communicator.size())),
        returns_(kSilentIntervals * interval_s_, 2 * interval_s_),
        on_stall_(std::move(on_stall)),
        on_return_(std::move(on_return)) {
    // Before anything else happens each rank knows whether it hears the others.
    socket_.send(0);
    communicator.barrier();
  }

  void run() {
    ::pthread_setname_np(::pthread_self(), "heartbeats");  // for `top -H`
    double looked_s = now_s();
    double next_beat_s = looked_s;
    while (!ending_) {
      const double nap_s = std::max(0.0, next_beat_s - now_s());
      const auto beats = socket_.receive(std::chrono::milliseconds(static_cast<int>(1e3 * nap_s)));
      const double now = now_s();
      if (now - looked_s > 2 * interval_s_) {  // this process was stopped, or its machine was busy
        attendance_.forgive(now - looked_s);
      }
      for (const Heartbeat& beat : beats) {
        returns_.heard(beat.rank, attendance_.heard(beat, now), now);
      }
      looked_s = now;
      if (now >= next_beat_s) {
        socket_.send(stuck_s(now));
        next_beat_s = now + interval_s_;
        judge(now);
        tell_returns(now);
      }
    }
  }

  void end() {
    ending_ = true;
    socket_.wake();
  }

 private:
  // For how long this rank has waited, and no message came.
  double stuck_s(double now) {
    if (pulse_ == nullptr || !pulse_->waiting || pulse_->waits_ended != waits_ended_) {
      waits_ended_ = pulse_ == nullptr ? 0 : pulse_->waits_ended.load();
      moved_s_ = now;
    }
    return now - moved_s_;
  }

  void judge(double now) {
    std::vector<int> silent = attendance_.silent(limit_s_, now);
    if (silent.empty() && attendance_.all_stuck_s(stuck_s(now)) < kStuckLimits * limit_s_) {
      return;
    }
    if (!silent.empty() && !noticed_) {
      noticed_ = true;  // others of the same machine are noticed by the next look
      return;
    }
    give_up(std::move(silent));
  }

  void tell_returns(double now) {
    const auto back = returns_.news(now);
    if (back && on_return_ && rank_ == 0 && !ending_) {
      on_return_(describe(*back, hosts_));
    }
  }

  void give_up(std::vector<int> silent) {
    Stall stall;
    stall.limit_s = limit_s_;
    stall.silent = std::move(silent);
    stall.hosts = hosts_;
    for (int rank = 0; rank < static_cast<int>(hosts_.size()); ++rank) {
      if (!std::binary_search(stall.silent.begin(), stall.silent.end(), rank)) {
        stall.living.push_back(rank);
      }
    }
    stall.grace_s = std::min(3.0, 3 * interval_s_ + 0.5);
    stall.reports = stall.living.front() == rank_;
    stall.is_deputy = stall.living.size() > 1 && stall.living[1] == rank_;
    ending_ = true;
    on_stall_(stall);
  }

  HeartbeatSocket socket_;
  Attendance attendance_;
  int rank_;
  std::vector<std::string> hosts_;
  Pulse* pulse_;
  double limit_s_;
  double interval_s_;
  Returns returns_;
  std::function<void(const Stall&)> on_stall_;
  std::function<void(const std::string&)> on_return_;
  std::atomic<bool> ending_{false};
  bool noticed_ = false;
  std::uint32_t waits_ended_ = 0;
  double moved_s_ = now_s();
};

Watchdog::Watchdog(const Communicator& communicator,
                   double limit_s,
                   std::function<void(const Stall&)> on_stall,
                   std::function<void(const std::string& what)> on_return) {
  if (communicator.size() > 1) {
    listener_ = std::make_unique<Listener>(
        communicator, limit_s, std::move(on_stall), std::move(on_return));
    thread_ = std::thread([this] { listener_->run(); });
  }
}

Watchdog::~Watchdog() {
  if (listener_) {
    listener_->end();
    thread_.join();
  }
}

}  // namespace tessera::engine
