// A file descriptor that is closed with it, and waiting for what one is ready for.

#pragma once

#include <utility>

namespace tessera::engine {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  // Leaves errno as it is.
  void close();
  // For whoever closes it instead.
  [[nodiscard]] int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Whether the descriptor is ready within the time: to be read with POLLIN, to be written with
// POLLOUT.
[[nodiscard]] bool is_ready(int descriptor, short events, double seconds);

}  // namespace tessera::engine
