#include "engine/ops/simd/processor.h"

#include <string>

#include "tests/support/fake_tree.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::processor_ids;
using engine::ProcessorId;
using engine::starts_in_order;

std::string register_of(int processor) {
  return "sys/devices/system/cpu/cpu" + std::to_string(processor) + "/regs/identification/midr_el1";
}

TEST_CASE("processors are those whose identification registers say so, each kind once") {
  const tests::FakeTree tree;
  CHECK(processor_ids(tree.root()).empty());
  tree.write(register_of(0), "0x00000000410fd034\n");
  tree.write(register_of(1), "0x00000000410fd034\n");
  CHECK(processor_ids(tree.root()) == std::vector<ProcessorId>{{0x41, 0xd03}});
  tree.write("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd08\n");
  CHECK(processor_ids(tree.root()).size() == 1);
  tree.write(register_of(2), "0x00000000414fd0b1\n");
  CHECK(processor_ids(tree.root()).size() == 2);
}

TEST_CASE("without registers they are those that proc lists") {
  const tests::FakeTree tree;
  tree.write("proc/cpuinfo",
             "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n"
             "CPU part\t: 0xd03\nCPU revision\t: 4\n\n"
             "processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n");
  CHECK(processor_ids(tree.root()) == std::vector<ProcessorId>{{0x41, 0xd03}, {0x41, 0xd08}});
  tree.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC\n");
  CHECK(processor_ids(tree.root()).empty());
  tree.make_unreadable("proc/cpuinfo");
  CHECK(processor_ids(tree.root()).empty());
}

TEST_CASE("of the processors of Raspberry Pis those of the third start instructions in order") {
  CHECK(starts_in_order({0x41, 0xd03}));
  CHECK(starts_in_order({0x41, 0xd05}));
  CHECK_FALSE(starts_in_order({0x41, 0xd08}));
  CHECK_FALSE(starts_in_order({0x41, 0xd0b}));
  CHECK_FALSE(starts_in_order({0x51, 0xd03}));
}

}  // namespace
