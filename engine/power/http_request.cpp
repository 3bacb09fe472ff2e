#include "engine/power/http_request.h"

#include <fmt/format.h>

#include "partitioner/base/errors.h"

#ifdef TESSERA_HAS_CURL
#include <curl/curl.h>
#include <memory>
#include <mutex>
#endif

namespace tessera::engine {

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
  static std::once_flag initialized;
  std::call_once(initialized, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
  const auto fail = [&](const std::string& reason) {
    throw InputError(fmt::format("{}:{}{}: {}", address.host, address.port, path, reason));
  };
  const std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> request(::curl_easy_init(),
                                                                      ::curl_easy_cleanup);
  Answer answer;
  answer.stop = stop;
  const std::string url = url_of(address, path);
  const long limit_ms = static_cast<long>(1e3 * seconds);
  ::curl_easy_setopt(request.get(), CURLOPT_URL, url.c_str());
  ::curl_easy_setopt(request.get(), CURLOPT_PROTOCOLS_STR, "http");
  ::curl_easy_setopt(request.get(), CURLOPT_PROXY, "");  // the plug is in this network
  ::curl_easy_setopt(request.get(), CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(request.get(), CURLOPT_CONNECTTIMEOUT_MS, limit_ms);
  ::curl_easy_setopt(request.get(), CURLOPT_TIMEOUT_MS, 2 * limit_ms);
  ::curl_easy_setopt(request.get(), CURLOPT_HEADERFUNCTION, take_header);
  ::curl_easy_setopt(request.get(), CURLOPT_HEADERDATA, &answer);
  ::curl_easy_setopt(request.get(), CURLOPT_WRITEFUNCTION, take_body);
  ::curl_easy_setopt(request.get(), CURLOPT_WRITEDATA, &answer);
  ::curl_easy_setopt(request.get(), CURLOPT_XFERINFOFUNCTION, asks_to_stop);
  ::curl_easy_setopt(request.get(), CURLOPT_XFERINFODATA, &answer);
  ::curl_easy_setopt(request.get(), CURLOPT_NOPROGRESS, 0L);
  const CURLcode result = ::curl_easy_perform(request.get());
  if (result != CURLE_OK) {
    fail(answer.too_long() ? "the answer is longer than 64 KiB"
                           : fmt::format("no answer ({})", ::curl_easy_strerror(result)));
  }
  constexpr long kOk = 200;
  long status = 0;
  ::curl_easy_getinfo(request.get(), CURLINFO_RESPONSE_CODE, &status);
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
