#include "engine/power/http_request.h"

#include <fmt/format.h>
#include <optional>
#include <regex>

#include "partitioner/base/errors.h"
#include "partitioner/base/late_library.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"

#ifdef TESSERA_HAS_CURL
#include <curl/curl.h>
#include <memory>
#endif

namespace tessera::engine {

HttpAddress parse_http_address(const std::string& text) {
  constexpr int kMostPort = 65535;
  constexpr int kMostId = 999;
  // An address in brackets or a name, a port, the number of a switch.
  static const std::regex form(
      R"((?:http://)?(?:\[([^\]]+)\]|([^\[\]:/?#@% \t]+))(?::(\d+))?/?(?:\?id=(\d+))?)");
  std::smatch parts;
  if (text.size() < 1000 && std::regex_match(text, parts, form)) {
    const auto number = [&](std::size_t part, int least, int most, int otherwise) {
      return parts[part].matched ? parsed_number<int>(parts[part].str(), least, most)
                                 : std::optional(otherwise);
    };
    const auto port = number(3, 1, kMostPort, 80);
    const auto id = number(4, 0, kMostId, 0);
    if (port && id) {
      return {parts[1].matched ? parts[1] : parts[2], *port, *id};
    }
  }
  throw InputError(
      fmt::format("\"{}\" is not the address of a plug: expected http://HOST, http://HOST:PORT "
                  "or, of one of several switches, http://HOST?id=1",
                  printable_start(text)));
}

#ifdef TESSERA_HAS_CURL

namespace {

// What has come so far, lines of the header included.
struct Answer {
  static constexpr std::size_t kMostBytes = 65536;
  std::string text;
  std::size_t bytes = 0;
  std::stop_token stop;

  [[nodiscard]] bool too_long() const { return bytes > kMostBytes; }
  // What libcurl takes for "go on" where it is the number of bytes that came.
  std::size_t take(const char* from, std::size_t count, bool body) {
    bytes += count;
    if (too_long()) {
      return 0;
    }
    if (body) {
      text.append(from, count);
    }
    return count;
  }
};

std::size_t take_header(char* from, std::size_t size, std::size_t count, void* answer) {
  return static_cast<Answer*>(answer)->take(from, size * count, false);
}

std::size_t take_body(char* from, std::size_t size, std::size_t count, void* answer) {
  return static_cast<Answer*>(answer)->take(from, size * count, true);
}

// Called while bytes come, and once a second where none do.
int asks_to_stop(void* answer, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const Answer*>(answer)->stop.stop_requested() ? 1 : 0;
}

// libcurl brings libraries of some MiB along: it is loaded when it is wanted.
struct Curl {
  decltype(&::curl_easy_init) init = nullptr;
  decltype(&::curl_easy_setopt) set = nullptr;
  decltype(&::curl_easy_perform) perform = nullptr;
  decltype(&::curl_easy_getinfo) info = nullptr;
  decltype(&::curl_easy_strerror) text_of = nullptr;
  decltype(&::curl_easy_cleanup) clean_up = nullptr;
};

std::optional<Curl> load_curl() {
  LateLibrary library({"libcurl-gnutls.so.4", "libcurl.so.4"});
  Curl curl;
  decltype(&::curl_global_init) start = nullptr;
  library.find(start, "curl_global_init");
  library.find(curl.init, "curl_easy_init");
  library.find(curl.set, "curl_easy_setopt");
  library.find(curl.perform, "curl_easy_perform");
  library.find(curl.info, "curl_easy_getinfo");
  library.find(curl.text_of, "curl_easy_strerror");
  library.find(curl.clean_up, "curl_easy_cleanup");
  return library.is_complete() && start(CURL_GLOBAL_DEFAULT) == CURLE_OK ? std::optional(curl)
                                                                         : std::nullopt;
}

std::string url_of(const HttpAddress& address, const std::string& path) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format(
      "http://{}:{}{}", v6 ? "[" + address.host + "]" : address.host, address.port, path);
}

}  // namespace

std::string http_answer(const HttpAddress& address,
                        const std::string& path,
                        double seconds,
                        const std::stop_token& stop) {
  static const std::optional<Curl> curl = load_curl();
  const auto fail = [&](const std::string& reason) {
    throw InputError(fmt::format("{}:{}{}: {}", address.host, address.port, path, reason));
  };
  if (!curl) {
    fail("cannot be asked without libcurl: install libcurl3-gnutls");
  }
  const std::unique_ptr<CURL, decltype(curl->clean_up)> request(curl->init(), curl->clean_up);
  Answer answer;
  answer.stop = stop;
  const std::string url = url_of(address, path);
  const long limit_ms = static_cast<long>(1e3 * seconds);
  curl->set(request.get(), CURLOPT_URL, url.c_str());
  curl->set(request.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl->set(request.get(), CURLOPT_PROXY, "");  // the plug is in this network
  curl->set(request.get(), CURLOPT_NOSIGNAL, 1L);
  curl->set(request.get(), CURLOPT_CONNECTTIMEOUT_MS, limit_ms);
  curl->set(request.get(), CURLOPT_TIMEOUT_MS, 2 * limit_ms);
  curl->set(request.get(), CURLOPT_HEADERFUNCTION, take_header);
  curl->set(request.get(), CURLOPT_HEADERDATA, &answer);
  curl->set(request.get(), CURLOPT_WRITEFUNCTION, take_body);
  curl->set(request.get(), CURLOPT_WRITEDATA, &answer);
  curl->set(request.get(), CURLOPT_XFERINFOFUNCTION, asks_to_stop);
  curl->set(request.get(), CURLOPT_XFERINFODATA, &answer);
  curl->set(request.get(), CURLOPT_NOPROGRESS, 0L);
  const CURLcode result = curl->perform(request.get());
  if (result != CURLE_OK) {
    fail(answer.too_long() ? "the answer is longer than 64 KiB"
                           : fmt::format("no answer ({})", curl->text_of(result)));
  }
  constexpr long kOk = 200;
  long status = 0;
  curl->info(request.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != kOk) {
    fail(fmt::format("answers with status {}", status));
  }
  return std::move(answer.text);
}

#else

std::string http_answer(const HttpAddress& address,
                        const std::string& /*path*/,
                        double /*seconds*/,
                        const std::stop_token& /*stop*/) {
  throw InputError(
      fmt::format("{} cannot be asked: this program was built without libcurl; install "
                  "libcurl4-gnutls-dev and build again",
                  address.host));
}

#endif

}  // namespace tessera::engine
