#include "engine/power/pmic_meter.h"

#include <fmt/format.h>

#include "tests/support/fake_tree.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::find_pmic_meter;
using tests::has;
using tests::input_error_of;

constexpr double kCommandSeconds = 60;

// As the firmware prints it: currents of twelve rails, their voltages, and two voltages more.
std::string firmware_answer(double core_a) {
  std::string text;
  for (int rail = 0; rail < 11; ++rail) {
    text += fmt::format("   RAIL{}_A current({})=0.10000000A\n", rail, rail);
  }
  text += fmt::format("    VDD_CORE_A current(7)={:.8f}A\n", core_a);
  for (int rail = 0; rail < 11; ++rail) {
    text += fmt::format("   RAIL{}_V volt({})=2.00000000V\n", rail, rail + 8);
  }
  return text +
         "    VDD_CORE_V volt(15)=0.75000000V\n"
         "     EXT5V_V volt(24)=5.15102000V\n"
         "      BATT_V volt(25)=0.00000000V\n";
}

void add_program(const tests::FakeTree& tree, const std::string& script) {
  tree.write("usr/bin/vcgencmd", "#!/bin/sh\n" + script);
  std::filesystem::permissions(tree.root() / "usr/bin/vcgencmd", std::filesystem::perms::all);
}

TEST_CASE("a board's watts follow from volts and amperes of its twelve rails") {
  CHECK(engine::pmic_board_w(firmware_answer(4)) ==
        doctest::Approx(1.1451 * (11 * 0.2 + 4 * 0.75) + 0.5879));
}

TEST_CASE("an answer of the firmware without the rails is refused") {
  const auto refusal = [](const std::string& text) {
    return input_error_of([&] { (void)engine::pmic_board_w(text); });
  };
  CHECK(has(refusal("error=1 error_msg=\"Command not registered\""), "0 of 12 rails"));
  CHECK(has(refusal(""), "0 of 12 rails"));
  const std::string sound = firmware_answer(1);
  CHECK(has(refusal(sound.substr(0, sound.find("VDD_CORE_V"))), "11 of 12 rails"));
}

TEST_CASE("where the mailbox does not answer, the firmware's program does") {
  const tests::FakeTree tree;
  tree.write("proc/device-tree/model", std::string("Raspberry Pi 5 Model B Rev 1.0\0", 31));
  tree.write("dev/vcio", "");
  tree.write("answer", firmware_answer(2));
  add_program(tree,
              "[ \"$1\" = pmic_read_adc ] && exec cat '" + (tree.root() / "answer").string() + "'");
  auto meter = find_pmic_meter(tree.root(), kCommandSeconds);
  REQUIRE(meter);
  CHECK(meter->description().source == "pmic");
  CHECK(meter->description().scope == engine::MeterScope::Board);
  const auto reading = meter->read();
  REQUIRE(reading);
  CHECK(reading->value == doctest::Approx(1.1451 * (11 * 0.2 + 2 * 0.75) + 0.5879));
}

TEST_CASE("only boards with such a chip are asked, and one that does not answer says why") {
  const tests::FakeTree tree;
  CHECK(!find_pmic_meter(tree.root(), kCommandSeconds));
  tree.write("dev/vcio", "");
  tree.write("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4");
  CHECK(!find_pmic_meter(tree.root(), kCommandSeconds));
  tree.write("proc/device-tree/model", "Raspberry Pi Compute Module 5 Rev 1.0");
  const auto refusal = [&] {
    return input_error_of([&] { (void)find_pmic_meter(tree.root(), kCommandSeconds); });
  };
  CHECK(has(refusal(), "dev/vcio: does not answer"));
  tree.remove("dev/vcio");
  CHECK(has(refusal(), "dev/vcio: cannot be opened"));
}

}  // namespace
