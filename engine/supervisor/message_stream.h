// Messages between the supervisor, its agents and their ranks: a line of JSON each, over pipes and
// sockets. Nothing here waits: what cannot be sent yet is kept, and what has come is taken as far
// as it is there.

#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::engine {

// A file descriptor that is closed with it.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  void close();

 private:
  int number_;
};

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
  void send(const nlohmann::json& message) { send(message.dump()); }
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

// A message; nothing where the line is not a JSON object.
[[nodiscard]] std::optional<nlohmann::json> message_in(const std::string& line);

// Members of a message that is not to be trusted; `otherwise` where it is missing or of another
// type.
[[nodiscard]] std::string text_in(const nlohmann::json& message, const char* name);
[[nodiscard]] Index number_in(const nlohmann::json& message, const char* name, Index otherwise = 0);

}  // namespace tessera::engine
