// Lines between processes, over pipes and sockets. Nothing here waits but PollSet: what cannot be
// sent yet is kept, and what has come is taken as far as it is there.

#pragma once

#include <cstddef>
#include <poll.h>
#include <string>
#include <vector>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

class LineStream {
 public:
  // Reads from one descriptor and writes to the other, or to the same; both become non-blocking.
  LineStream(Descriptor in, Descriptor out);
  explicit LineStream(Descriptor both);

  [[nodiscard]] int in() const { return in_.number(); }
  [[nodiscard]] int out() const { return out_.is_open() ? out_.number() : in_.number(); }
  [[nodiscard]] bool wants_to_write() const { return !unsent_.empty(); }
  [[nodiscard]] std::size_t unsent_bytes() const { return unsent_.size(); }

  // Lines that have come whole, without their ends. What comes after the end of the other side, or
  // a line of more than kLongestLine bytes, is an end: is_over() then.
  [[nodiscard]] std::vector<std::string> receive();
  [[nodiscard]] bool is_over() const { return over_; }

  // Sends now what can be sent, the rest by flush(). With more than kMostUnsent bytes waiting the
  // other side takes nothing any more: is_over() then.
  void send(const std::string& line);
  void flush();

  void close();

  static constexpr std::size_t kLongestLine = std::size_t{16} << 20U;
  static constexpr std::size_t kMostUnsent = std::size_t{256} << 20U;

 private:
  Descriptor in_;
  Descriptor out_;
  std::string received_;
  std::string unsent_;
  bool over_ = false;
};

// What is waited for, all of it at once.
class PollSet {
 public:
  void add(int descriptor) { waits_.push_back({descriptor, POLLIN, 0}); }
  // Lines, and that what could not be sent yet can be. One that is over is not waited for: it would
  // be ready for ever.
  void add(const LineStream& stream);

  // Until something is ready, but no longer than that.
  void wait(double seconds);

 private:
  std::vector<pollfd> waits_;
};

}  // namespace tessera::engine
