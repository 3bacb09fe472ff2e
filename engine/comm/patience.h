// How a rank waits: it gives the processor away, at once at first and for longer the longer there
// is nothing to see. A Pulse tells other threads of it.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace tessera::engine {

// Whether this rank waits for others, as they may be told, and how long it has waited so far.
struct Pulse {
  std::atomic<bool> waiting{false};
  std::atomic<std::uint32_t> waits_ended{0};
  std::atomic<std::int64_t> waited_ns{0};         // in waits that have ended
  std::atomic<std::int64_t> waiting_since_ns{0};  // of steady_clock; 0: does not wait

  // Seconds in all waits, the one in progress included. Any thread may ask.
  [[nodiscard]] double waited_s() const {
    const std::int64_t ended = waited_ns;  // first: a wait that ends meanwhile is not counted twice
    const std::int64_t since = waiting_since_ns;
    return 1e-9 * static_cast<double>(ended + (since == 0 ? 0 : steady_ns() - since));
  }

  [[nodiscard]] static std::int64_t steady_ns() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

class Patience {
 public:
  static constexpr std::chrono::microseconds kUsualPause{200};

  // It looks at least once in `longest`.
  explicit Patience(Pulse* pulse, std::chrono::microseconds longest = kUsualPause)
      : pulse_(pulse), longest_(longest) {}
  ~Patience() { end_wait(); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  void wait() {
    constexpr int kLooks = 20;
    begin_wait();
    if (looks_++ < kLooks) {
      std::this_thread::yield();
      return;
    }
    if (!noted_ && pulse_ != nullptr) {
      noted_ = true;
      pulse_->waiting = true;
    }
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, longest_);
  }

  // Something was there to see: the next wait is a new one.
  void renew() {
    end_wait();
    looks_ = 0;
    pause_ = kShortestPause;
  }

 private:
  static constexpr std::chrono::microseconds kShortestPause{20};

  void begin_wait() {
    if (since_ns_ == 0 && pulse_ != nullptr) {
      since_ns_ = Pulse::steady_ns();
      pulse_->waiting_since_ns = since_ns_;
    }
  }

  void end_wait() {
    if (since_ns_ != 0) {
      pulse_->waiting_since_ns = 0;
      pulse_->waited_ns += Pulse::steady_ns() - since_ns_;
      since_ns_ = 0;
    }
    if (noted_) {
      noted_ = false;
      ++pulse_->waits_ended;
      pulse_->waiting = false;
    }
  }

  Pulse* pulse_;
  std::chrono::microseconds longest_;
  std::int64_t since_ns_ = 0;  // of the wait in progress
  bool noted_ = false;
  int looks_ = 0;
  std::chrono::microseconds pause_{kShortestPause};
};

}  // namespace tessera::engine
