// Answers requests over HTTP, in the thread of whoever calls it, within fixed bounds: connections,
// those of one address, memory of each, the time until a request is answered, bytes on their way,
// and the share of a processor. Whatever is sent to it, and however fast or slowly.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

struct HttpLimits {
  int connections = 64;
  int of_one_address = 16;
  std::size_t bytes_of_connection = std::size_t{16} << 10U;  // its request line and headers
  double request_s = 20;                                     // all of it, up to the last byte
  double crowded_request_s = 3;                              // where most connections are taken
  std::size_t bytes_on_their_way = std::size_t{32} << 20U;   // of all answers; one may be larger
  double processor_share = 0.05;                             // of one
};

struct HttpRequest {
  std::string_view path;   // as it was sent: nothing in it is decoded
  std::string_view since;  // "?since=..."; empty: none
  std::string_view host;   // of its header Host; empty: none
  bool takes_gzip = false;
};

struct HttpAnswer {
  int status = 200;
  const char* type = "text/plain; charset=utf-8";
  std::string body = {};
  bool is_gzip = false;
};

class HttpServer {
 public:
  // Of a GET or HEAD; other methods are refused before.
  using Answer = std::function<HttpAnswer(const HttpRequest&)>;

  // `headers` are names and values, of every answer. Throws InputError where there is no
  // libmicrohttpd, now or when this program was built.
  HttpServer(Descriptor listening,
             std::vector<std::pair<std::string, std::string>> headers,
             Answer answer,
             HttpLimits limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves for about so long.
  void run(double seconds);

  // Throws InputError as the constructor does.
  static void expect_library();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::engine
