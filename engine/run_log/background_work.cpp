#include "engine/run_log/background_work.h"

#include <chrono>
#include <system_error>
#include <utility>

namespace tessera::engine {

BackgroundWork::~BackgroundWork() {
  abandon();
}

void BackgroundWork::start(std::function<void()> work) {
  try {
    jobs_.push_back(std::async(std::launch::async, work));
  } catch (const std::system_error&) {  // no more threads
    std::packaged_task<void()> now(work);
    now();  // what it throws comes out where that of a thread does
    jobs_.push_back(now.get_future());
  }
}

bool BackgroundWork::is_done() {
  while (!jobs_.empty() &&
         jobs_.front().wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    std::future<void> job = std::move(jobs_.front());
    jobs_.erase(jobs_.begin());
    job.get();
  }
  return jobs_.empty();
}

void BackgroundWork::finish() {
  while (!jobs_.empty()) {
    std::future<void> job = std::move(jobs_.front());
    jobs_.erase(jobs_.begin());
    job.get();
  }
}

void BackgroundWork::abandon() noexcept {
  for (const std::future<void>& job : jobs_) {
    job.wait();
  }
  jobs_.clear();
}

}  // namespace tessera::engine
