#include "engine/power/meter_spec.h"

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::MeterKind;
using engine::meters_of_rank;
using engine::MeterSpec;
using engine::parse_meter;
using tests::has;
using tests::input_error_of;

std::string refusal_of(const std::string& text) {
  return input_error_of([&] { (void)parse_meter(text); });
}

TEST_CASE("a meter is [WHERE=]KIND[:ARGUMENT]") {
  CHECK(parse_meter("auto") == MeterSpec{MeterKind::Automatic});
  CHECK(parse_meter("table") == MeterSpec{MeterKind::Table});
  CHECK(parse_meter("table:pi3b") == MeterSpec{MeterKind::Table, "pi3b"});
  CHECK(parse_meter("pi1=shelly:http://10.0.0.7:8080/x?a=b") ==
        MeterSpec{MeterKind::Shelly, "http://10.0.0.7:8080/x?a=b", "pi1"});
  CHECK(parse_meter("command:A=1 read-meter --port=2") ==
        MeterSpec{MeterKind::Command, "A=1 read-meter --port=2"});
  CHECK(parse_meter("cluster=tasmota:http://plug") ==
        MeterSpec{MeterKind::Tasmota, "http://plug", "", true});
  for (const char* text : {"none", "pi1=file:a=b:c", "cluster=command:x y", "pi-2.lan=hwmon"}) {
    CHECK(to_text(parse_meter(text)) == text);
  }
}

TEST_CASE("what is no meter is refused, and it says what was expected") {
  CHECK(has(refusal_of("raple"), "did you mean `rapl`"));
  CHECK(has(refusal_of(""), "expected auto, none, rapl"));
  CHECK(has(refusal_of("=rapl"), "no host before"));
  CHECK(has(refusal_of("rapl:0"), "takes no argument"));
  CHECK(has(refusal_of("auto:"), "takes no argument"));
  CHECK(has(refusal_of("command"), "expected a command"));
  CHECK(has(refusal_of("file:"), "expected a file"));
  CHECK(has(refusal_of("table:"), "expected a board"));
  CHECK(has(refusal_of("cluster=rapl"), "a whole cluster"));
  CHECK(has(refusal_of("cluster=table:pi3b"), "a whole cluster"));
}

TEST_CASE("each machine reads its meter once, and rank 0 the cluster's") {
  const std::vector<std::string> hosts{"pi1", "pi2", "pi1", "pi2"};
  const std::vector<MeterSpec> specs{parse_meter("pi2=table:pi4b"),
                                     parse_meter("hwmon"),
                                     parse_meter("cluster=shelly:http://plug")};
  CHECK(to_text(meters_of_rank(specs, hosts, 0).board) == "hwmon");
  CHECK(to_text(*meters_of_rank(specs, hosts, 0).cluster) == "cluster=shelly:http://plug");
  CHECK(to_text(meters_of_rank(specs, hosts, 1).board) == "pi2=table:pi4b");
  CHECK(!meters_of_rank(specs, hosts, 1).cluster);
  CHECK(to_text(meters_of_rank(specs, hosts, 2).board) == "none");
  CHECK(to_text(meters_of_rank(specs, hosts, 3).board) == "none");
  CHECK(to_text(meters_of_rank({}, hosts, 1).board) == "auto");
}

TEST_CASE("meters of unknown machines, of one place twice, or one plug of all are refused") {
  const auto refusal = [](const std::vector<MeterSpec>& specs) {
    return input_error_of([&] { (void)meters_of_rank(specs, {"board1", "board2"}, 0); });
  };
  CHECK(has(refusal({parse_meter("boadr2=rapl")}), "did you mean `board2`"));
  CHECK(has(refusal({parse_meter("rapl"), parse_meter("hwmon")}), "a second meter"));
  CHECK(has(refusal({parse_meter("board1=rapl"), parse_meter("board1=none")}), "a second meter"));
  CHECK(has(refusal({parse_meter("shelly:http://a")}), "board1=shelly:http://a or cluster="));
  CHECK(refusal({parse_meter("board1=shelly:http://a"), parse_meter("none")}).empty());
}

}  // namespace
