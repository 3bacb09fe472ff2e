#include "engine/ops/simd/cache_blocks.h"

#include <string>

#include "tests/support/fake_tree.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::cache_blocks_for;
using engine::CacheBlocks;
using engine::second_cache;
using engine::SecondCache;

constexpr Index kKib = 1024;
const std::string kCpu0 = "sys/devices/system/cpu/cpu0/";

void write_cache(const tests::FakeTree& tree,
                 int number,
                 const std::string& level,
                 const std::string& size,
                 const std::string& sharing) {
  const std::string cache = kCpu0 + "cache/index" + std::to_string(number) + "/";
  tree.write(cache + "level", level + "\n");
  tree.write(cache + "type", "Unified\n");
  tree.write(cache + "size", size + "\n");
  tree.write(cache + "shared_cpu_list", sharing + "\n");
}

TEST_CASE("the cache of the second level is the one that sys calls so") {
  const tests::FakeTree tree;
  tree.write(kCpu0 + "topology/thread_siblings_list", "0\n");
  write_cache(tree, 0, "1", "32K", "0");
  write_cache(tree, 2, "2", "512K", "0-3");
  write_cache(tree, 3, "3", "2048K", "0-3");
  CHECK(second_cache(tree.root()) == SecondCache{512 * kKib, true});
  write_cache(tree, 2, "2", "1M", "0");
  CHECK(second_cache(tree.root()) == SecondCache{1024 * kKib, false});
}

TEST_CASE("threads of one core share its own cache") {
  const tests::FakeTree tree;
  tree.write(kCpu0 + "topology/thread_siblings_list", "0,4\n");
  write_cache(tree, 0, "2", "512K", "0,4");
  CHECK(second_cache(tree.root()) == SecondCache{512 * kKib, false});
  write_cache(tree, 0, "2", "512K", "0-7");
  CHECK(second_cache(tree.root()) == SecondCache{512 * kKib, true});
}

TEST_CASE("where sys has no size the processors of Raspberry Pis are known") {
  for (const char* size : {"", "K", "-512K", "512", "99999999999999999999K", "9999999999K"}) {
    CAPTURE(size);
    const tests::FakeTree tree;
    write_cache(tree, 0, "2", size, "0-3");
    CHECK(second_cache(tree.root()) == SecondCache{});
    tree.write("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd03\n");
    CHECK(second_cache(tree.root()) == SecondCache{512 * kKib, true});
    tree.write("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd08\n");
    CHECK(second_cache(tree.root()) == SecondCache{1024 * kKib, true});
    tree.write("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd0b\n");
    CHECK(second_cache(tree.root()) == SecondCache{512 * kKib, false});
    tree.write("proc/cpuinfo", "CPU implementer\t: 0x51\nCPU part\t: 0xd03\n");
    CHECK(second_cache(tree.root()) == SecondCache{});
  }
}

TEST_CASE("a part of a map is half of a cache that cores share, or as large as a core's own") {
  CHECK(cache_blocks_for({}) == CacheBlocks{});
  CHECK_FALSE(cache_blocks_for({}).together());
  CHECK(cache_blocks_for({512 * kKib, true}) == CacheBlocks{256 * kKib, 512 * kKib});
  CHECK(cache_blocks_for({512 * kKib, true}).together());
  CHECK(cache_blocks_for({512 * kKib, false}) == CacheBlocks{512 * kKib, 0});
  CHECK(cache_blocks_for({16 * 1024 * kKib, false}).part_bytes == CacheBlocks{}.part_bytes);
  CHECK(cache_blocks_for({1, false}).part_bytes >= 64 * kKib);
}

}  // namespace
