// Something that must be over within a time, whatever this thread is doing meanwhile, also where it
// is inside MPI and does not come back.

#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tessera::engine {

class TimeLimit {
 public:
  // Calls `at_end` in a thread of its own unless this ends earlier.
  TimeLimit(double seconds, std::function<void()> at_end);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace tessera::engine
