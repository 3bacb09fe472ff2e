#include "engine/power/plug_meter.h"

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/power/http_request.h"

#ifdef TESSERA_HAS_HTTPLIB
#include <atomic>
#include <fmt/format.h>
#include <httplib.h>
#include <thread>
#endif

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::HttpAddress;
using engine::parse_http_address;
using engine::shelly_meter;
using engine::tasmota_meter;
using tests::has;
using tests::input_error_of;

TEST_CASE("a plug's address is a host, perhaps a port and the number of a switch") {
  CHECK(parse_http_address("http://10.0.0.7") == HttpAddress{"10.0.0.7", 80, 0});
  CHECK(parse_http_address("plug.lan/") == HttpAddress{"plug.lan", 80, 0});
  CHECK(parse_http_address("http://plug:8080/?id=3") == HttpAddress{"plug", 8080, 3});
  CHECK(parse_http_address("http://plug?id=1") == HttpAddress{"plug", 80, 1});
  CHECK(parse_http_address("http://[fe80::1]:81") == HttpAddress{"fe80::1", 81, 0});
  CHECK(parse_http_address("[::1]") == HttpAddress{"::1", 80, 0});
  for (const char* text : {"",
                           "http://",
                           "https://plug",
                           "http://plug:0",
                           "plug:99999",
                           "plug:x",
                           "plug/rpc",
                           "user@plug",
                           "plug?id=-1",
                           "a b",
                           "::1",
                           "[",
                           "[]",
                           "plug?x"}) {
    CAPTURE(text);
    CHECK(has(input_error_of([&] { (void)parse_http_address(text); }), "is not the address"));
  }
}

#ifdef TESSERA_HAS_HTTPLIB

constexpr double kPlugLimit_s = 60;  // more than anything here takes on a busy machine

// A plug that answers on the loopback.
class Plug {
 public:
  Plug() : port_(server_.bind_to_any_port("127.0.0.1")) {
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) {
      std::this_thread::yield();
    }
  }
  ~Plug() {
    server_.stop();
    thread_.join();
  }
  Plug(const Plug&) = delete;
  Plug& operator=(const Plug&) = delete;

  // Before it is asked for that path.
  void answer(const std::string& path, const std::string& text, int status = 200) {
    server_.Get(path, [text, status](const httplib::Request&, httplib::Response& response) {
      response.status = status;
      response.set_content(text, "application/json");
    });
  }
  httplib::Server& server() { return server_; }
  [[nodiscard]] std::string address() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  httplib::Server server_;
  int port_;
  std::thread thread_;
};

TEST_CASE("a Shelly of the first generation shows its watts") {
  Plug plug;
  plug.answer("/shelly", R"({"type":"SHPLG-S","mac":"0","auth":false,"fw":"1","num_meters":1})");
  plug.answer("/meter/0", R"({"power":4.37,"overpower":0,"is_valid":true,"total":12})");
  engine::PowerMeter meter = shelly_meter(plug.address(), kPlugLimit_s);
  CHECK(meter.description().source == "shelly");
  CHECK(!meter.description().counts_joules);
  CHECK(meter.read()->value == doctest::Approx(4.37));
}

TEST_CASE("a Shelly since the second generation shows the watts of the switch that was named") {
  Plug plug;
  plug.answer("/shelly", R"({"id":"shellyplus","gen":3,"app":"PlusPlugS"})");
  plug.server().Get(
      "/rpc/Switch.GetStatus", [](const httplib::Request& request, httplib::Response& response) {
        response.set_content(request.get_param_value("id") == "2" ? R"({"id":2,"apower":31.5})"
                                                                  : R"({"id":0,"apower":7})",
                             "application/json");
      });
  CHECK(shelly_meter(plug.address(), kPlugLimit_s).read()->value == doctest::Approx(7));
  CHECK(shelly_meter(plug.address() + "?id=2", kPlugLimit_s).read()->value ==
        doctest::Approx(31.5));
}

TEST_CASE("a plug with Tasmota shows its watts, one of several switches those of one") {
  Plug plug;
  std::atomic<bool> several = false;
  plug.server().Get("/cm", [&](const httplib::Request& request, httplib::Response& response) {
    const bool asked = request.get_param_value("cmnd") == "Status 10";
    response.set_content(!asked    ? "{}"
                         : several ? R"({"StatusSNS":{"ENERGY":{"Total":1.5,"Power":[3,4.5]}}})"
                                   : R"({"StatusSNS":{"ENERGY":{"Total":1.5,"Power":12}}})",
                         "application/json");
  });
  CHECK(tasmota_meter(plug.address(), kPlugLimit_s).read()->value == doctest::Approx(12));
  several = true;
  CHECK(tasmota_meter(plug.address() + "?id=1", kPlugLimit_s).read()->value ==
        doctest::Approx(4.5));
  engine::PowerMeter meter = tasmota_meter(plug.address() + "?id=2", kPlugLimit_s);
  CHECK(!meter.read());
  CHECK(has(meter.problem(), "no number /StatusSNS/ENERGY/Power/2"));
}

// Why a Shelly that answers this has no watts.
std::string problem_of(const std::string& text, int status = 200) {
  Plug plug;
  plug.answer("/shelly", "{}");
  plug.answer("/meter/0", text, status);
  engine::PowerMeter meter = shelly_meter(plug.address(), kPlugLimit_s);
  CHECK(!meter.read());
  return meter.problem();
}

TEST_CASE("answers that have no watts are failures that say why") {
  CHECK(has(problem_of("<html>"), "\"<html>\" is not a JSON object"));
  CHECK(has(problem_of("[1]"), "is not a JSON object"));
  CHECK(has(problem_of(R"({"power":"4"})"), "no number /power"));
  CHECK(has(problem_of(R"({"power":4,"is_valid":false})"), "not valid"));
  CHECK(has(problem_of("{}", 401), "answers with status 401"));
  CHECK(has(problem_of(std::string(100000, ' ')), "longer than 64 KiB"));
}

TEST_CASE("a plug that is not there or says nothing is given up soon") {
  std::string address;
  {
    const Plug plug;
    address = plug.address();
  }
  CHECK(has(input_error_of([&] { (void)shelly_meter(address, kPlugLimit_s); }), "no answer"));
  Plug plug;
  std::atomic<bool> over = false;
  plug.server().Get("/shelly", [&](const httplib::Request&, httplib::Response&) {
    while (!over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  CHECK(has(input_error_of([&] { (void)shelly_meter(plug.address(), 0.1); }), "no answer"));
  over = true;
}

#endif

#ifndef TESSERA_HAS_CURL

TEST_CASE("without an HTTP library no plug can be asked, and it says what to install") {
  CHECK(has(input_error_of([] { (void)shelly_meter("http://127.0.0.1:1", 1); }),
            "built without libcurl"));
}

#endif

}  // namespace
