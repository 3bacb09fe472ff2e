#include "engine/serve/http_server.h"

#include "partitioner/base/errors.h"

#ifdef TESSERA_HAS_MICROHTTPD
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <map>
#include <microhttpd.h>
#include <optional>
#include <sys/resource.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/system/clock.h"
#include "partitioner/base/late_library.h"
#endif

namespace tessera::engine {

#ifdef TESSERA_HAS_MICROHTTPD

namespace {

// It brings libraries of some MiB along: it is loaded when it is wanted.
struct Library {
  decltype(&::MHD_start_daemon) start = nullptr;
  decltype(&::MHD_stop_daemon) stop = nullptr;
  decltype(&::MHD_run_wait) run = nullptr;
  decltype(&::MHD_lookup_connection_value) value = nullptr;
  decltype(&::MHD_get_connection_info) info = nullptr;
  decltype(&::MHD_create_response_from_buffer_with_free_callback_cls) response = nullptr;
  decltype(&::MHD_add_response_header) add_header = nullptr;
  decltype(&::MHD_queue_response) queue = nullptr;
  decltype(&::MHD_destroy_response) release = nullptr;
};

const Library& library() {
  static const std::optional<Library> loaded = [] {
    LateLibrary late({"libmicrohttpd.so.12"});
    Library found;
    late.find(found.start, "MHD_start_daemon");
    late.find(found.stop, "MHD_stop_daemon");
    late.find(found.run, "MHD_run_wait");
    late.find(found.value, "MHD_lookup_connection_value");
    late.find(found.info, "MHD_get_connection_info");
    late.find(found.response, "MHD_create_response_from_buffer_with_free_callback_cls");
    late.find(found.add_header, "MHD_add_response_header");
    late.find(found.queue, "MHD_queue_response");
    late.find(found.release, "MHD_destroy_response");
    return late.is_complete() ? std::optional(found) : std::nullopt;
  }();
  if (!loaded) {
    throw InputError("--serve needs libmicrohttpd: install libmicrohttpd12");
  }
  return *loaded;
}

// Descriptors that this process needs for other things: the folder of a run, what it prints.
int connections_allowed(int wanted) {
  constexpr rlim_t kOthers = 24;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return wanted;
  }
  const rlim_t left = limit.rlim_cur > kOthers ? limit.rlim_cur - kOthers : 1;
  return static_cast<int>(std::min(left, static_cast<rlim_t>(wanted)));
}

std::string_view text_or_empty(const char* text) {
  return text == nullptr ? std::string_view() : text;
}

}  // namespace

struct HttpServer::State {
  struct Connection {
    int descriptor = -1;
    double since_s = 0;  // it was made, or has answered a request
  };
  // A body on its way to somebody.
  struct Body {
    std::string bytes;
    std::size_t* on_their_way;
  };

  const Library& http = library();
  HttpLimits limits;
  int allowed = 0;  // connections
  std::vector<std::pair<std::string, std::string>> headers;
  Answer answer;
  std::map<MHD_Connection*, Connection> connections;
  std::size_t on_their_way = 0;
  double answering_s = 0;  // of a processor, in `answer`
  MHD_Daemon* daemon = nullptr;

  ~State() {
    if (daemon != nullptr) {
      http.stop(daemon);
    }
  }

  static void note_connection(void* self,
                              MHD_Connection* connection,
                              void** /*context*/,
                              MHD_ConnectionNotificationCode what) {
    State& state = *static_cast<State*>(self);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      state.connections.erase(connection);
      return;
    }
    const MHD_ConnectionInfo* info = state.http.info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    state.connections[connection] = {info == nullptr ? -1 : info->connect_fd, now_s()};
  }

  static void note_end(void* self,
                       MHD_Connection* connection,
                       void** /*request*/,
                       MHD_RequestTerminationCode /*how*/) {
    State& state = *static_cast<State*>(self);
    if (const auto found = state.connections.find(connection); found != state.connections.end()) {
      found->second.since_s = now_s();
    }
  }

  static void free_body(void* body) {
    const std::unique_ptr<Body> owner(static_cast<Body*>(body));
    *owner->on_their_way -= owner->bytes.size();
  }

  static std::size_t leave_as_it_is(void* /*self*/, MHD_Connection* /*connection*/, char* text) {
    return std::char_traits<char>::length(text);
  }

  // Called once when the headers are there, and again when the request is.
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static MHD_Result handle(void* self,
                           MHD_Connection* connection,
                           const char* path,
                           const char* method,
                           const char* /*version*/,
                           const char* /*upload*/,
                           std::size_t* upload_bytes,  // NOLINT(readability-non-const-parameter)
                           void** request) noexcept {
    static char seen = 0;
    State& state = *static_cast<State*>(self);
    const std::string_view name = text_or_empty(method);
    try {
      if (name != "GET" && name != "HEAD") {
        return state.send(connection, {405, "text/plain; charset=utf-8", "GET or HEAD\n"});
      }
      if (*request == nullptr) {
        *request = &seen;
        return MHD_YES;
      }
      return *upload_bytes > 0 ? MHD_NO : state.send(connection, state.answer_to(connection, path));
    } catch (const std::exception&) {
      return MHD_NO;  // the connection is closed
    }
  }

  HttpAnswer answer_to(MHD_Connection* connection, const char* path) {
    const std::string_view coding =
        text_or_empty(http.value(connection, MHD_HEADER_KIND, "Accept-Encoding"));
    const double before_s = processor_s();
    HttpAnswer made =
        answer({.path = path,
                .since = text_or_empty(http.value(connection, MHD_GET_ARGUMENT_KIND, "since")),
                .host = text_or_empty(http.value(connection, MHD_HEADER_KIND, "Host")),
                .takes_gzip = coding.find("gzip") != std::string_view::npos &&
                              coding.find("gzip;q=0") == std::string_view::npos});
    answering_s += processor_s() - before_s;
    if (on_their_way > 0 && on_their_way + made.body.size() > limits.bytes_on_their_way) {
      return {503, "text/plain; charset=utf-8", "busy\n"};
    }
    return made;
  }

  MHD_Result send(MHD_Connection* connection, HttpAnswer made) {
    auto body = std::make_unique<Body>(Body{std::move(made.body), &on_their_way});
    MHD_Response* const response =
        http.response(body->bytes.size(), body->bytes.data(), free_body, body.get());
    if (response == nullptr) {
      return MHD_NO;
    }
    on_their_way += body->bytes.size();
    (void)body.release();  // to free_body()
    http.add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, made.type);
    for (const auto& [name, value] : headers) {
      http.add_header(response, name.c_str(), value.c_str());
    }
    if (made.is_gzip) {
      http.add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    if (made.status == 405) {
      http.add_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    const MHD_Result result = http.queue(connection, static_cast<unsigned>(made.status), response);
    http.release(response);
    return result;
  }

  // The library's own limit begins anew with every byte.
  void end_overdue_connections() const {
    constexpr double kMost = 0.75;
    const bool is_crowded = static_cast<double>(connections.size()) > kMost * allowed;
    const double limit_s = is_crowded ? limits.crowded_request_s : limits.request_s;
    for (const auto& [connection, held] : connections) {
      if (now_s() - held.since_s > limit_s) {
        ::shutdown(held.descriptor, SHUT_RDWR);  // it is closed when the library looks at it
      }
    }
  }
};

HttpServer::HttpServer(Descriptor listening,
                       std::vector<std::pair<std::string, std::string>> headers,
                       Answer answer,
                       HttpLimits limits)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.limits = limits;
  state.allowed = connections_allowed(limits.connections);
  state.headers = std::move(headers);
  state.answer = std::move(answer);
  // With select(): with epoll, version 0.9.75 does not notice who leaves amid a header that came in
  // several parts.
  state.daemon = state.http.start(MHD_NO_FLAG,
                                  0,
                                  nullptr,
                                  nullptr,
                                  State::handle,
                                  &state,
                                  MHD_OPTION_LISTEN_SOCKET,
                                  listening.number(),
                                  MHD_OPTION_CONNECTION_LIMIT,
                                  static_cast<unsigned>(state.allowed),
                                  MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                                  static_cast<unsigned>(limits.of_one_address),
                                  MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                  limits.bytes_of_connection,
                                  MHD_OPTION_CONNECTION_TIMEOUT,
                                  static_cast<unsigned>(limits.request_s),
                                  MHD_OPTION_NOTIFY_CONNECTION,
                                  State::note_connection,
                                  &state,
                                  MHD_OPTION_NOTIFY_COMPLETED,
                                  State::note_end,
                                  &state,
                                  MHD_OPTION_UNESCAPE_CALLBACK,
                                  State::leave_as_it_is,
                                  nullptr,
                                  MHD_OPTION_END);
  if (state.daemon == nullptr) {
    throw std::system_error(errno, std::generic_category(), "libmicrohttpd does not start");
  }
  (void)listening.release();  // the library closes it
}

HttpServer::~HttpServer() = default;

void HttpServer::run(double seconds) {
  constexpr double kMilliseconds = 1e3;
  constexpr double kUncounted_s = 1e-3;
  State& state = *state_;
  const double end_s = now_s() + seconds;
  while (now_s() < end_s) {
    const double left_s = std::max(end_s - now_s(), 0.0);
    const double before_s = processor_s() - state.answering_s;
    state.http.run(state.daemon, static_cast<std::int32_t>(left_s * kMilliseconds) + 1);
    state.end_overdue_connections();
    const double used_s = processor_s() - state.answering_s - before_s;
    if (used_s > kUncounted_s) {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(used_s * (1 / state.limits.processor_share - 1)));
    }
  }
}

void HttpServer::expect_library() {
  (void)library();
}

#else

struct HttpServer::State {};

HttpServer::HttpServer(Descriptor /*listening*/,
                       std::vector<std::pair<std::string, std::string>> /*headers*/,
                       Answer /*answer*/,
                       HttpLimits /*limits*/) {
  expect_library();
}
HttpServer::~HttpServer() = default;
void HttpServer::run(double /*seconds*/) {}

void HttpServer::expect_library() {
  throw InputError(
      "--serve: this program was built without an HTTP server: install libmicrohttpd-dev and build "
      "again");
}

#endif

}  // namespace tessera::engine
