#include "engine/power/http_request.h"

#include <fmt/format.h>

#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

#ifdef TESSERA_HAS_HTTPLIB
#include <httplib.h>
#endif

namespace tessera::engine {

#ifdef TESSERA_HAS_HTTPLIB

std::string http_answer(const HttpAddress& address,
                        const std::string& path,
                        double seconds,
                        const std::stop_token& stop) {
  constexpr std::size_t kMostBytes = 65536;
  const auto fail = [&](const std::string& reason) {
    throw InputError(fmt::format("{}:{}{}: {}", address.host, address.port, path, reason));
  };
  httplib::Client client(address.host, address.port);
  const auto limit = std::chrono::microseconds(static_cast<long>(1e6 * seconds));
  client.set_connection_timeout(limit);
  client.set_read_timeout(limit);
  client.set_write_timeout(limit);
  const std::stop_callback stopped(stop, [&client] { client.stop(); });
  const double end = now_s() + 2 * seconds;
  std::string text;
  const auto result = client.Get(path, [&](const char* bytes, std::size_t count) {
    text.append(bytes, count);
    return text.size() <= kMostBytes && now_s() < end && !stop.stop_requested();
  });
  if (!result) {
    fail(text.size() > kMostBytes ? "the answer is longer than 64 KiB"
                                  : fmt::format("no answer ({})", to_string(result.error())));
  }
  constexpr int kOk = 200;
  if (result->status != kOk) {
    fail(fmt::format("answers with status {}", result->status));
  }
  return text;
}

#else

std::string http_answer(const HttpAddress& address,
                        const std::string& /*path*/,
                        double /*seconds*/,
                        const std::stop_token& /*stop*/) {
  throw InputError(
      fmt::format("{} cannot be asked: this program was built without "
                  "libcpp-httplib-dev; install it and build again",
                  address.host));
}

#endif

}  // namespace tessera::engine
