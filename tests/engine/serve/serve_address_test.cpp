#include "engine/serve/serve_address.h"

#include <string>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/serve/secret_word.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::parse_serve_address;
using engine::ServeAddress;
using tests::has;
using tests::input_error_of;

TEST_CASE("a port alone is one of the loopback, and an address or a name stands before it") {
  CHECK(parse_serve_address("8080") == ServeAddress{"127.0.0.1", 8080});
  CHECK(parse_serve_address("0") == ServeAddress{"127.0.0.1", 0});
  CHECK(parse_serve_address("0.0.0.0:65535") == ServeAddress{"0.0.0.0", 65535});
  CHECK(parse_serve_address("pi-1.lan:80") == ServeAddress{"pi-1.lan", 80});
  CHECK(parse_serve_address("[::1]:8080") == ServeAddress{"::1", 8080});
  CHECK(parse_serve_address("[fe80::1%eth0]:1") == ServeAddress{"fe80::1%eth0", 1});
}

TEST_CASE("what is no place to serve at is refused with what was found and what was expected") {
  for (const std::string& text : {std::string(),
                                  std::string("65536"),
                                  std::string("-1"),
                                  std::string("+80"),
                                  std::string(" 80"),
                                  std::string("80 "),
                                  std::string("0x50"),
                                  std::string(":80"),
                                  std::string("::1:80"),
                                  std::string("[::1]"),
                                  std::string("[]:80"),
                                  std::string("[pi1]:80"),
                                  std::string("192.168.1.7"),
                                  std::string("192.168.1.7:"),
                                  std::string("http://pi1:80"),
                                  std::string("pi1:80/"),
                                  std::string("pi1\n:80"),
                                  std::string(100'000, '8')}) {
    CAPTURE(text);
    const std::string error = input_error_of([&] { (void)parse_serve_address(text); });
    CHECK(has(error, "is neither a port nor an address with one: expected a number from 0"));
  }
}

TEST_CASE("port 0 is one that the system chooses, and no second program gets it") {
  const auto first = engine::listen_at({"127.0.0.1", 0});
  CHECK(first.address == "127.0.0.1");
  CHECK(first.port > 0);
  const std::string error = input_error_of([&] {
    (void)engine::listen_at({"127.0.0.1", first.port});
  });
  CHECK(has(error, std::to_string(first.port) + ": another program uses this port"));
}

TEST_CASE("an address of another machine is none to serve at") {
  CHECK(has(input_error_of([] {
              (void)engine::listen_at({"192.0.2.1", 0});
            }),
            "--serve 192.0.2.1:0: this machine has no such address: it has "));
  CHECK(has(input_error_of([] {
              (void)engine::listen_at({"1.2.3.4.5", 0});
            }),
            "\"1.2.3.4.5\" is neither an address nor a name"));
}

TEST_CASE("addresses with colons stand in brackets") {
  CHECK(engine::url_of("127.0.0.1", 80) == "http://127.0.0.1:80/");
  CHECK(engine::url_of("::1", 8080) == "http://[::1]:8080/");
}

TEST_CASE("what stands for all addresses is reached by none that stands for all") {
  CHECK(engine::reachable_addresses("192.0.2.1") == std::vector<std::string>{"192.0.2.1"});
  for (const std::string& address : engine::reachable_addresses("0.0.0.0")) {
    CHECK(address != "0.0.0.0");
    CHECK(!has(address, ":"));
  }
}

TEST_CASE("secret words are 128 bits, and each another") {
  const std::string word = engine::secret_word();
  CHECK(word.size() == 32);
  CHECK(word.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(word != engine::secret_word());
  CHECK(engine::is_same_word(word, word));
  CHECK(!engine::is_same_word(word, word.substr(1)));
  CHECK(!engine::is_same_word("", word));
  for (std::size_t i = 0; i < word.size(); ++i) {
    std::string other = word;
    other[i] = other[i] == '0' ? '1' : '0';
    CHECK(!engine::is_same_word(word, other));
  }
}

}  // namespace
