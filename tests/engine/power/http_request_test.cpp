// Devices that answer badly: whatever they send, a question ends.

#include "engine/power/http_request.h"

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#ifdef TESSERA_HAS_CURL

#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <functional>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

// Listens on the loopback, and sends `start` and then `again` for ever to whoever asks.
class BadDevice {
 public:
  BadDevice(std::string start, std::string again, std::chrono::milliseconds pause = {})
      : start_(std::move(start)), again_(std::move(again)), pause_(pause) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 1);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = {"127.0.0.1", ntohs(address.sin_port), 0};
    thread_ = std::thread([this] { answer(); });
  }
  ~BadDevice() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  BadDevice(const BadDevice&) = delete;
  BadDevice& operator=(const BadDevice&) = delete;

  [[nodiscard]] std::string refusal(double seconds, const std::stop_token& stop = {}) const {
    return tests::input_error_of(
        [&] { (void)engine::http_answer(address_, "/meter/0", seconds, stop); });
  }

 private:
  void answer() const {
    const int connection = ::accept(listener_, nullptr, nullptr);
    if (connection < 0) {
      return;
    }
    std::string next = start_;
    while (::send(connection, next.data(), next.size(), MSG_NOSIGNAL) > 0) {
      next = again_;
      std::this_thread::sleep_for(pause_);
    }
    ::close(connection);
  }

  std::string start_;
  std::string again_;
  std::chrono::milliseconds pause_;
  int listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  engine::HttpAddress address_;
  std::thread thread_;
};

constexpr double kLong_s = 600;  // an answer that is too long ends before
constexpr double kShort_s = 0.2;
constexpr std::chrono::milliseconds kDrip{20};

TEST_CASE("an answer without end is too long, in its header as in its text") {
  CHECK(tests::has(BadDevice("HTTP/1.1 200 OK\r\n", "X-Again: again\r\n").refusal(kLong_s),
                   "longer than 64 KiB"));
  CHECK(tests::has(BadDevice("HTTP/1.1 200 OK\r\n\r\n", "again ").refusal(kLong_s),
                   "longer than 64 KiB"));
  CHECK(tests::has(
      BadDevice("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n").refusal(kLong_s),
      "longer than 64 KiB"));
}

TEST_CASE("a line of a header without end is refused") {
  CHECK(tests::has(BadDevice("HTTP/1.1 200 OK\r\nX-Long: ", "again").refusal(kLong_s), "answer"));
}

TEST_CASE("an answer that comes drop by drop ends when its time is over") {
  CHECK(tests::has(BadDevice("HTTP/1.1 200 OK\r\nX: ", "x", kDrip).refusal(kShort_s), "no answer"));
  CHECK(
      tests::has(BadDevice("HTTP/1.1 200 OK\r\n\r\n", " ", kDrip).refusal(kShort_s), "no answer"));
}

TEST_CASE("a question ends when it is asked to stop") {
  std::stop_source stop;
  const BadDevice device("HTTP/1.1 200 OK\r\n\r\n", " ", kDrip);
  std::jthread stopping([&stop] { stop.request_stop(); });
  CHECK(tests::has(device.refusal(kLong_s, stop.get_token()), "no answer"));
}

}  // namespace

#endif
