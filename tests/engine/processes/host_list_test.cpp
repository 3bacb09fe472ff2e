#include "engine/processes/host_list.h"

#include <fstream>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/system/host_name.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using tests::TemporaryFolder;

namespace {

std::vector<Host> hosts_of_text(const std::string& text) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "hosts";
  std::ofstream(path) << text;
  return read_host_file(path);
}

}  // namespace

TEST_CASE("a host file has a host a line, with its ranks, comments and addresses") {
  const auto hosts = hosts_of_text(
      "# four\npi1\n  pi2:3  # three here\n\n10.0.0.7:2\n[fe80::1%eth0]:2\nfe80::2\npi1:2\n");
  REQUIRE(hosts.size() == 5);
  CHECK(hosts[0].name == "pi1");
  CHECK(hosts[0].ranks == 3);  // of both lines
  CHECK(hosts[1].name == "pi2");
  CHECK(hosts[1].ranks == 3);
  CHECK(hosts[2].name == "10.0.0.7");
  CHECK(hosts[2].ranks == 2);
  CHECK(hosts[3].name == "fe80::1%eth0");
  CHECK(hosts[3].ranks == 2);
  CHECK(hosts[4].name == "fe80::2");
  CHECK(hosts[4].ranks == 1);
}

TEST_CASE("a byte-order mark is not part of a name, and slots are ranks") {
  const auto hosts = hosts_of_text("\xef\xbb\xbfpi1 slots=2\r\npi2\tslots=3 # three\r\n");
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].name == "pi1");
  CHECK(hosts[0].ranks == 2);
  CHECK(hosts[1].ranks == 3);
}

TEST_CASE("names of hosts are neither options nor commands of a shell") {
  for (const char* bad : {"-oProxyCommand=x",
                          "a b",
                          "$(reboot)",
                          "`x`",
                          "pi;x",
                          "pi|x",
                          "a'b",
                          "",
                          "\xc3\xa4",
                          "a\nb",
                          "pi/x",
                          "pi&"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_host_name(bad));
  }
  CHECK(is_host_name("pi-1.local"));
  CHECK_FALSE(is_host_name(std::string(254, 'a')));
  CHECK_THROWS_AS(hosts_of_text("-oProxyCommand=reboot\n"), InputError);
  CHECK_THROWS_AS(hosts_of_text("$(reboot):2\n"), InputError);
}

TEST_CASE("what is wrong in a host file is said with its line") {
  for (const char* bad : {"pi1\npi2:0\n",
                          "pi1\npi2:x\n",
                          "pi1\npi2:\n",
                          "pi1\npi2:65\n",
                          "pi1\npi2:-1\n",
                          "pi1\npi2:99999999999\n",
                          "pi1\npi2 2\n",
                          "pi1\npi2 : 2\n",
                          "pi1\npi2 slots=0\n",
                          "pi1\npi2 slots=\n",
                          "pi1\npi2:2 slots=2\n",
                          "pi1\npi2 slots=2 slots=2\n",
                          "pi1\npi2 max-slots=2\n",
                          "pi1:40\npi1:40\n"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(hosts_of_text(bad), doctest::Contains("line 2"), InputError);
  }
  CHECK_THROWS_AS(hosts_of_text("# nobody\n"), InputError);
  CHECK_THROWS_AS(read_host_file("/nowhere/hosts"), InputError);
  CHECK_THROWS_WITH_AS(read_host_file("/dev/zero"), doctest::Contains("a device"), InputError);
  CHECK_THROWS_AS(hosts_of_text(std::string(2'000'000, 'a')), InputError);
}

TEST_CASE("this machine is found by its name, and by addresses of its own") {
  CHECK(place_of_this_machine({{"no-such-host.invalid", 1}, {host_name(), 1}}) == 1);
  CHECK(place_of_this_machine({{"127.0.0.1", 1}}) == 0);
  CHECK(place_of_this_machine({{"192.0.2.1", 1}}) == -1);
  CHECK(place_of_this_machine({{"192.0.2.1", 1}, {"localhost", 1}}) == 1);
}

}  // namespace tessera::engine
