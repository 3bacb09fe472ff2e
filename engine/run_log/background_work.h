// Work that goes on in threads of its own while training does, such as waiting until a file is on
// its disk, which takes an SD card seconds.

#pragma once

#include <functional>
#include <future>
#include <vector>

namespace tessera::engine {

class BackgroundWork {
 public:
  BackgroundWork() = default;
  // Waits for all that was started.
  ~BackgroundWork();
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  // Starts `work`; where no thread can be started, does it now, and throws nothing either. Work
  // that was started before may be going on.
  void start(std::function<void()> work);

  // Whether all is done. Throws what work that is done has thrown, once.
  [[nodiscard]] bool is_done();

  // The same when all is done.
  void finish();

  // Waits until all is done, and forgets what it has thrown.
  void abandon() noexcept;

 private:
  std::vector<std::future<void>> jobs_;
};

}  // namespace tessera::engine
