// What a run that cannot go on says when other devices have vanished: see comm/watchdog.h.

#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/comm/watchdog.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// The last checkpoint of a training run, told by one thread and asked for by another.
class LastCheckpoint {
 public:
  // `uses_data_map`: each rank has data of its own, which goes with it.
  explicit LastCheckpoint(bool uses_data_map) : uses_data_map_(uses_data_map) {}
  void set(const std::string& file, Index step) {
    const std::lock_guard lock(mutex_);
    file_ = file;
    step_ = step;
  }
  // 0: there is none.
  [[nodiscard]] Index step() const {
    const std::lock_guard lock(mutex_);
    return step_;
  }
  // What else is to happen when other devices have vanished, beside what is printed.
  void on_stall(std::function<void(const std::string& what)> told) {
    const std::lock_guard lock(mutex_);
    told_ = std::move(told);
  }
  void tell_of_stall(const std::string& what) const {
    const std::lock_guard lock(mutex_);
    if (told_) {
      told_(what);
    }
  }
  // The ranks that are silent, on each rank that finds out; called before all else.
  void on_silence(std::function<void(const std::vector<int>& ranks)> told) {
    const std::lock_guard lock(mutex_);
    told_of_silence_ = std::move(told);
  }
  void tell_of_silence(const std::vector<int>& ranks) const {
    const std::lock_guard lock(mutex_);
    if (told_of_silence_) {
      told_of_silence_(ranks);
    }
  }
  // The same where they are back after a silence, in which the run waited for them.
  void on_return(std::function<void(const std::string& what)> told) {
    const std::lock_guard lock(mutex_);
    told_of_return_ = std::move(told);
  }
  void tell_of_return(const std::string& what) const {
    const std::lock_guard lock(mutex_);
    if (told_of_return_) {
      told_of_return_(what);
    }
  }
  // Where it is, and how to go on from it with the ranks that are left.
  [[nodiscard]] std::string advice(const Stall& stall) const;

 private:
  mutable std::mutex mutex_;
  bool uses_data_map_;
  std::string file_;  // empty: there is none yet
  Index step_ = 0;
  std::function<void(const std::string&)> told_;
  std::function<void(const std::string&)> told_of_return_;
  std::function<void(const std::vector<int>&)> told_of_silence_;
};

// Watches as a command asks; with a checkpoint where it trains. 0: the usual limit.
[[nodiscard]] Watchdog watch(const Communicator& communicator,
                             Index limit_s,
                             const LastCheckpoint* checkpoint = nullptr);

}  // namespace tessera::engine
