#include "engine/comm/time_limit.h"

#include <chrono>
#include <utility>

namespace tessera::engine {

TimeLimit::TimeLimit(double seconds, std::function<void()> at_end)
    : thread_([this, seconds, at_end = std::move(at_end)] {
        std::unique_lock lock(mutex_);
        if (!wake_.wait_for(
                lock, std::chrono::duration<double>(seconds), [this] { return over_; })) {
          at_end();
        }
      }) {}

TimeLimit::~TimeLimit() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace tessera::engine
