#include "engine/processes/line_stream.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace tessera::engine {

namespace {

void make_unblocking(int descriptor) {
  if (descriptor >= 0) {
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
}

// That nobody reads any more is an error, not SIGPIPE, as far as the system can be told so.
ssize_t send_without_signal(int descriptor, const char* bytes, std::size_t count) {
  const ssize_t sent = ::send(descriptor, bytes, count, MSG_NOSIGNAL);
  return sent < 0 && errno == ENOTSOCK ? ::write(descriptor, bytes, count) : sent;
}

}  // namespace

LineStream::LineStream(Descriptor in, Descriptor out) : in_(std::move(in)), out_(std::move(out)) {
  make_unblocking(in_.number());
  make_unblocking(out_.number());
}

LineStream::LineStream(Descriptor both) : LineStream(std::move(both), Descriptor()) {}

std::vector<std::string> LineStream::receive() {
  constexpr std::size_t kAtOnce = 65536;
  constexpr int kMostReads = 64;  // then others have their turn
  std::array<char, kAtOnce> bytes{};
  for (int i = 0; i < kMostReads && !over_; ++i) {
    const ssize_t count = ::read(in_.number(), bytes.data(), bytes.size());
    if (count > 0) {
      received_.append(bytes.data(), static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else {
      over_ = true;
    }
  }
  std::vector<std::string> lines;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = received_.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(received_.substr(at, end - at));
  }
  received_.erase(0, at);
  over_ = over_ || received_.size() > kLongestLine;
  return lines;
}

void LineStream::send(const std::string& line) {
  if (over_) {
    return;
  }
  unsent_ += line;
  unsent_ += '\n';
  flush();
  over_ = over_ || unsent_.size() > kMostUnsent;
}

void LineStream::flush() {
  std::size_t sent = 0;
  while (sent < unsent_.size() && !over_) {
    const ssize_t count = send_without_signal(out(), unsent_.data() + sent, unsent_.size() - sent);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      over_ = true;
    }
  }
  unsent_.erase(0, sent);
}

void LineStream::close() {
  in_.close();
  out_.close();
  unsent_.clear();
  over_ = true;
}

void PollSet::add(const LineStream& stream) {
  if (stream.is_over()) {
    return;
  }
  add(stream.in());
  if (stream.wants_to_write()) {
    waits_.push_back({stream.out(), POLLOUT, 0});
  }
}

void PollSet::wait(double seconds) {
  constexpr double kMilliseconds = 1e3;
  ::poll(waits_.data(), waits_.size(), static_cast<int>(kMilliseconds * seconds));
}

}  // namespace tessera::engine
