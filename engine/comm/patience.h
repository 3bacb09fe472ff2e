// How a rank waits: it gives the processor away, at once at first and for longer the longer there
// is nothing to see.

#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace engine {

class Patience {
 public:
  void wait() {
    constexpr int kLooks = 20;
    if (looks_++ < kLooks) {
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, std::chrono::microseconds(200));
  }

 private:
  int looks_ = 0;
  std::chrono::microseconds pause_{20};
};

}  // namespace engine
