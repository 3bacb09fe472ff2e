// What a device on the network answers over HTTP, without ever waiting for it for long.

#pragma once

#include <stop_token>
#include <string>

namespace tessera::engine {

struct HttpAddress {
  std::string host;  // a name, or an address without brackets
  int port = 80;
  int id = 0;  // of one of several switches: "?id=1"
  friend bool operator==(const HttpAddress&, const HttpAddress&) = default;
};

// "http://HOST[:PORT][/][?id=N]"; "http://" may be left out. Throws InputError that says so.
[[nodiscard]] HttpAddress parse_http_address(const std::string& text);

// The text of the answer where its status is 200. Header and text together have at most 64 KiB.
// `seconds` is the limit for connecting, and twice as much for all of it, however the bytes come; a
// request to stop ends it within a second. Throws InputError that names the host and the reason,
// also where this program is built without libcurl.
[[nodiscard]] std::string http_answer(const HttpAddress& address,
                                      const std::string& path,
                                      double seconds,
                                      const std::stop_token& stop = {});

}  // namespace tessera::engine
