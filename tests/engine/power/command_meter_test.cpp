#include "engine/power/command_meter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "tests/support/fake_tree.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/power/power_sampler.h"
#include "engine/processes/command_output.h"
#include "engine/system/clock.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::command_meter;
using engine::command_output;
using engine::meter_output;
using engine::MeterOutput;
using tests::has;
using tests::input_error_of;

constexpr double kCommandLimit_s = 60;  // more than anything here takes on a busy machine

TEST_CASE("a command prints watts, or joules with their unit") {
  CHECK(meter_output("12.5\n") == MeterOutput{12.5, false});
  CHECK(meter_output(" 12.5 W \r\n") == MeterOutput{12.5, false});
  CHECK(meter_output("2500mW") == MeterOutput{2.5, false});
  CHECK(meter_output("4567 J") == MeterOutput{4567, true});
  CHECK(meter_output("2 Wh") == MeterOutput{7200, true});
  CHECK(meter_output("1.5e-3 kWh") == MeterOutput{5400, true});
}

TEST_CASE("what else a command may print is refused and quoted") {
  for (const char* text : {"",
                           "\n",
                           "W",
                           "12 w",
                           "12 V",
                           "twelve",
                           "nan",
                           "inf W",
                           "1 2",
                           "1\n2",
                           "12 W\n13 W",
                           "0x1f"}) {
    CAPTURE(text);
    CHECK(has(input_error_of([&] { (void)meter_output(text); }), "is not a number of watts"));
  }
}

TEST_CASE("a command is a line of the shell, with nothing to read and nobody to complain to") {
  CHECK(command_output("cat; echo \"$((2 + 3))\" | tr 5 6; echo no >&2", kCommandLimit_s) == "6\n");
  CHECK(command_output("true", kCommandLimit_s).empty());
}

TEST_CASE(
    "a command sees no open files of this process, and no signal that is blocked or ignored") {
  const tests::FakeTree tree;
  tree.write("open", "");
  const int open = ::open((tree.root() / "open").c_str(), O_RDONLY);
  REQUIRE(open > 2);
  CHECK(command_output("ls -l /proc/self/fd | grep -c /open || true", kCommandLimit_s) == "0\n");
  ::close(open);
  // The C library keeps two signals beyond the 31 usual ones for itself.
  for (const char* kind : {"SigBlk", "SigIgn"}) {
    CHECK(command_output(fmt::format("set -- $(grep {} /proc/self/status); "
                                     "echo $((0x$2 & 0x7fffffff))",
                                     kind),
                         kCommandLimit_s) == "0\n");
  }
}

TEST_CASE("a command that fails, hangs, is missing or does not stop says so") {
  const auto refusal = [](const char* command, double seconds) {
    return input_error_of([&] { (void)command_output(command, seconds); });
  };
  CHECK(has(refusal("exit 3", kCommandLimit_s), "the command \"exit 3\" exits with 3"));
  CHECK(has(refusal("/nowhere/meter --watts", kCommandLimit_s), "exits with 127"));
  CHECK(has(refusal("kill -9 $$", kCommandLimit_s), "was ended by signal 9"));
  CHECK(
      has(refusal("while :; do echo 12345678; done", kCommandLimit_s), "prints more than 64 KiB"));
  CHECK(has(refusal("sleep 1000", 0.2), "took more than 0.2 s"));
  CHECK(has(refusal("exec >&-; sleep 1000", 0.2), "took more than 0.2 s"));
}

TEST_CASE("what a command that hangs has started is killed with it") {
  const tests::FakeTree tree;
  const std::string file = (tree.root() / "process").string();
  (void)input_error_of(
      [&] { (void)command_output("sleep 1000 & echo $! > '" + file + "'; wait", 0.5); });
  const std::string process = command_output("cat '" + file + "'", kCommandLimit_s);
  const std::string gone = "for i in $(seq 500); do grep -q '^State:.[^Z]' /proc/" +
                           process.substr(0, process.find('\n')) +
                           "/status 2>/dev/null || exec echo gone; sleep 0.02; done";
  CHECK(command_output(gone, kCommandLimit_s) == "gone\n");
}

TEST_CASE("a meter is a command that is run again for each reading") {
  const tests::FakeTree tree;
  const std::string file = (tree.root() / "watts").string();
  tree.write("watts", "4.5 W\n");
  engine::PowerMeter meter = command_meter("cat '" + file + "'", kCommandLimit_s);
  CHECK(!meter.description().counts_joules);
  CHECK(meter.read()->value == doctest::Approx(4.5));
  tree.write("watts", "900 J\n");
  CHECK(!meter.read());
  CHECK(has(meter.problem(), "watts and joules in turn"));
  tree.write("watts", "not ready\n");
  CHECK(!meter.read());
  CHECK(has(meter.problem(), "printed \"not ready\" is not a number"));
  tree.write("watts", "5\n");
  CHECK(meter.read()->value == doctest::Approx(5));
  CHECK(command_meter("echo 900 J", kCommandLimit_s).description().counts_joules);
  CHECK(has(input_error_of([] { (void)command_meter("false", kCommandLimit_s); }), "exits with 1"));
}

TEST_CASE("a sampler does not wait for a command that hangs, neither to look nor to end") {
  const tests::FakeTree tree;
  const std::string first = (tree.root() / "first").string();
  const double start = engine::now_s();
  {
    engine::PowerSampler sampler(command_meter(
        "if mkdir '" + first + "' 2>/dev/null; then echo 3; else sleep 1000; fi", 900));
    CHECK(!sampler.state().last);
  }
  CHECK(engine::now_s() - start < 600);
}

}  // namespace
