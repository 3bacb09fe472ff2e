// How a rank waits: it gives the processor away, at once at first and for longer the longer there
// is nothing to see. A Pulse tells other threads of it.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace tessera::engine {

// Whether this rank waits for others, as they may be told.
struct Pulse {
  std::atomic<bool> waiting{false};
  std::atomic<std::uint32_t> waits_ended{0};
};

class Patience {
 public:
  explicit Patience(Pulse* pulse) : pulse_(pulse) {}
  ~Patience() { end_wait(); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  void wait() {
    constexpr int kLooks = 20;
    if (looks_++ < kLooks) {
      std::this_thread::yield();
      return;
    }
    if (!noted_ && pulse_ != nullptr) {
      noted_ = true;
      pulse_->waiting = true;
    }
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, std::chrono::microseconds(200));
  }

  // Something was there to see: the next wait is a new one.
  void renew() {
    end_wait();
    looks_ = 0;
    pause_ = kShortestPause;
  }

 private:
  static constexpr std::chrono::microseconds kShortestPause{20};

  void end_wait() {
    if (noted_) {
      noted_ = false;
      ++pulse_->waits_ended;
      pulse_->waiting = false;
    }
  }

  Pulse* pulse_;
  bool noted_ = false;
  int looks_ = 0;
  std::chrono::microseconds pause_{kShortestPause};
};

}  // namespace tessera::engine
