// Round trip and throughput between two devices, over a TCP connection of its own: through a remote
// shell, encryption would be what is measured. One side listens for a few seconds, on the one
// address that the other reaches, and serves who sends its token; nobody else gets an answer.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

inline constexpr std::size_t kTokenBytes = 32;

// 32 random hexadecimal digits.
[[nodiscard]] std::string new_token();

class LinkListener {
 public:
  // Listens on a free port of that address of this machine. Throws InputError where it is none.
  explicit LinkListener(const std::string& address);

  [[nodiscard]] int port() const { return port_; }

  // Serves one trial of who sends the token first; returns whether that came to its end within
  // `timeout_s`.
  bool serve(const std::string& token, double timeout_s);

 private:
  Descriptor socket_;
  int port_ = 0;
};

struct LinkRates {
  double round_trip_s = 0;      // the least of some, of one byte
  double to_bytes_per_s = 0;    // from here to the listener
  double from_bytes_per_s = 0;  // from the listener to here
};

// Throws InputError that says why there is no result: "connection refused", "no answer".
[[nodiscard]] LinkRates try_link(const std::string& address,
                                 int port,
                                 const std::string& token,
                                 double timeout_s);

}  // namespace tessera::engine
