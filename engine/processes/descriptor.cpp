#include "engine/processes/descriptor.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace tessera::engine {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = other.release();
  }
  return *this;
}

void Descriptor::close() {
  if (number_ >= 0) {
    const int error = errno;
    ::close(release());
    errno = error;
  }
}

bool is_ready(int descriptor, short events, double seconds) {
  constexpr double kMilliseconds = 1e3;
  pollfd look{descriptor, events, 0};
  return ::poll(&look, 1, static_cast<int>(kMilliseconds * std::max(seconds, 0.0))) > 0;
}

}  // namespace tessera::engine
