#include "engine/serve/run_server.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/chart/style.h"
#include "engine/page/page.h"
#include "engine/processes/addresses.h"
#include "engine/run_view/run_reader.h"
#include "engine/serve/http_server.h"
#include "engine/serve/live_page.h"
#include "engine/serve/live_parts.h"
#include "engine/serve/run_end.h"
#include "engine/serve/secret_word.h"
#include "engine/system/clock.h"

namespace tessera::engine {

namespace {

constexpr double kLook_s = 2;
// Pages are made for at most this share of a processor.
constexpr double kMakingShare = 0.02;
constexpr std::size_t kNameLetters = 8;

std::vector<std::pair<std::string, std::string>> page_headers() {
  return {{"Content-Security-Policy",
           "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'self'; "
           "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool in_brackets = host.find(']', colon) != std::string_view::npos;
  return colon == std::string_view::npos || in_brackets ? host : host.substr(0, colon);
}

}  // namespace

struct RunServer::State {
  std::filesystem::path folder;
  std::string address;
  std::string word;  // empty: on the loopback
  std::string base;  // "/", or the word in between
  std::vector<std::string> urls;
  Piece start;
  Piece end;
  Piece script;
  LiveParts parts{secret_word().substr(0, kNameLetters), kLearningPart};
  std::optional<RunReader> reader;
  RunEnd run_end;
  double looked_s = 0;
  double news_s = 0;
  bool unmade = true;    // the folder has news that the parts lack
  double make_at_s = 0;  // not before
  std::unique_ptr<HttpServer> server;

  [[nodiscard]] const RunData& run() const {
    static const RunData nothing;
    return reader ? reader->data() : nothing;
  }

  void open_folder() {
    std::error_code error;
    if (!reader &&
        std::filesystem::status(folder, error).type() != std::filesystem::file_type::not_found) {
      reader.emplace(folder, Sheets::Read);
    }
  }

  // Whether the server may end.
  bool look() {
    open_folder();
    const bool news = reader && reader->read();
    looked_s = now_s();
    news_s = news ? looked_s : news_s;
    unmade = unmade || news;
    return run_end.is_over(run(), news, looked_s);
  }

  // The parts as of the last look, where somebody wants them.
  void make() {
    if (unmade && now_s() >= make_at_s) {
      const double before_s = processor_s();
      parts.offer(page_parts(run(), {}));
      make_at_s = now_s() + (processor_s() - before_s) / kMakingShare;
      unmade = false;
    }
    parts.release(now_s(), has_ended(run()) && !was_killed(run()));
  }

  HttpAnswer answer(const HttpRequest& request) {
    if (word.empty() && !is_host_of_loopback(request.host)) {
      return {421, "text/plain; charset=utf-8", "not here\n"};
    }
    std::string_view path = request.path;
    if (!word.empty()) {
      path.remove_prefix(path.starts_with('/') ? 1 : 0);
      const std::string_view first = path.substr(0, path.find('/'));
      if (!is_same_word(first, word)) {
        return not_found();
      }
      path.remove_prefix(first.size());
    }
    if (path.empty() || path == "/") {
      return page("", request.takes_gzip, true);
    }
    if (path == "/changes") {
      return page(request.since, request.takes_gzip, false);
    }
    return path == "/live.js"
               ? sent("text/javascript; charset=utf-8", {&script}, request.takes_gzip)
               : not_found();
  }

  // Of another name for this machine, a page of a stranger's would be of the same site as this one.
  [[nodiscard]] bool is_host_of_loopback(std::string_view host) const {
    const std::array<std::string, 4> names{"localhost", "127.0.0.1", "[::1]", address};
    return std::find(names.begin(), names.end(), without_port(host)) != names.end();
  }

  static HttpAnswer not_found() { return {404, "text/plain; charset=utf-8", "nothing here\n"}; }

  static HttpAnswer sent(const char* type, const std::vector<const Piece*>& pieces, bool gzip) {
    return {.type = type, .body = gzip ? gzip_file(pieces) : plain_text(pieces), .is_gzip = gzip};
  }

  HttpAnswer page(std::string_view since, bool gzip, bool whole) {
    make();
    const Piece state = make_piece(live_state_html({.mark = parts.mark(),
                                                    .run = run().state,
                                                    .killed = was_killed(run()),
                                                    .age_s = now_s() - looked_s,
                                                    .quiet_s = now_s() - news_s}));
    std::vector<const Piece*> pieces = parts.since(since);
    pieces.push_back(&state);
    if (whole) {
      pieces.insert(pieces.begin(), &start);
      pieces.push_back(&end);
    }
    return sent("text/html; charset=utf-8", pieces, gzip);
  }
};

RunServer::RunServer(std::filesystem::path folder, const ServeAddress& where)
    : state_(std::make_unique<State>()) {
  HttpServer::expect_library();
  State& state = *state_;
  state.folder = std::move(folder);
  state.news_s = now_s();
  state.open_folder();  // or say what is wrong with it, before anything listens
  ListeningSocket listening = listen_at(where);
  state.address = listening.address;
  state.word = is_loopback_address(listening.address) ? "" : secret_word();
  state.base = state.word.empty() ? "/" : "/" + state.word + "/";
  for (const std::string& address : reachable_addresses(listening.address)) {
    state.urls.push_back(url_of(address, listening.port) + state.base.substr(1));
  }
  state.start = make_piece(live_page_start());
  state.end = make_piece(live_page_end(state.base, state.folder.string()));
  state.script = make_piece(std::string(chart_script()) + std::string(live_script()));
  state.server = std::make_unique<HttpServer>(
      std::move(listening.descriptor), page_headers(), [&state](const HttpRequest& request) {
        return state.answer(request);
      });
}

RunServer::~RunServer() = default;

const std::vector<std::string>& RunServer::urls() const {
  return state_->urls;
}

bool RunServer::is_open_to_others() const {
  return !state_->word.empty();
}

void RunServer::serve() {
  while (!state_->look()) {
    state_->server->run(kLook_s);
  }
}

}  // namespace tessera::engine
