#include "engine/system/system_memory.h"

#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::free_memory_bytes;

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

constexpr const char* kMeminfo =
    "MemTotal:        4000000 kB\nMemFree:          100000 kB\nMemAvailable:    2000000 kB\n";

TEST_CASE("without a limit it is what the kernel says is available") {
  const tests::TemporaryFolder folder;
  CHECK(free_memory_bytes(folder.path()) == 0);
  write(folder.path() / "proc/meminfo", kMeminfo);
  CHECK(free_memory_bytes(folder.path()) == 2000000 * 1024LL);
  write(folder.path() / "proc/self/cgroup", "0::/user.slice\n");
  write(folder.path() / "sys/fs/cgroup/user.slice/memory.max", "max\n");
  write(folder.path() / "sys/fs/cgroup/user.slice/memory.current", "5000\n");
  CHECK(free_memory_bytes(folder.path()) == 2000000 * 1024LL);
}

TEST_CASE(
    "the lowest limit of a group or of one that it lies in counts, files that give way apart") {
  const tests::TemporaryFolder folder;
  write(folder.path() / "proc/meminfo", kMeminfo);
  write(folder.path() / "proc/self/cgroup", "0::/a/b\n");
  const auto groups = folder.path() / "sys/fs/cgroup";
  write(groups / "a/b/memory.max", "900000000\n");
  write(groups / "a/b/memory.current", "100000000\n");
  CHECK(free_memory_bytes(folder.path()) == 800000000);
  write(groups / "a/b/memory.stat", "anon 70000000\ninactive_file 30000000\n");
  CHECK(free_memory_bytes(folder.path()) == 830000000);
  write(groups / "a/memory.max", "500000000\n");
  write(groups / "a/memory.current", "200000000\n");
  CHECK(free_memory_bytes(folder.path()) == 300000000);
}

TEST_CASE("groups of version 1 are found, and of a container that sees its own group as the top") {
  const tests::TemporaryFolder folder;
  write(folder.path() / "proc/meminfo", kMeminfo);
  write(folder.path() / "proc/self/cgroup", "9:cpu,cpuacct:/x\n5:memory:/outside/name\n0::/\n");
  const auto group = folder.path() / "sys/fs/cgroup/memory";
  write(group / "memory.limit_in_bytes", "700000000\n");
  write(group / "memory.usage_in_bytes", "300000000\n");
  write(group / "memory.stat", "inactive_file 5\ntotal_inactive_file 100000000\n");
  CHECK(free_memory_bytes(folder.path()) == 500000000);
  write(group / "outside/name/memory.limit_in_bytes", "100000\n");
  write(group / "outside/name/memory.usage_in_bytes", "200000\n");
  CHECK(free_memory_bytes(folder.path()) == 1);  // nothing is left
}

TEST_CASE("what groups leave is known apart from what the machine has") {
  const tests::TemporaryFolder folder;
  write(folder.path() / "proc/meminfo", kMeminfo);
  CHECK(!engine::memory_left_by_groups(folder.path()));
  write(folder.path() / "proc/self/cgroup", "5:memory:/a\n");
  const auto group = folder.path() / "sys/fs/cgroup/memory/a";
  write(group / "memory.limit_in_bytes", "9223372036854771712\n");  // version 1 means none
  write(group / "memory.usage_in_bytes", "300000000\n");
  CHECK(!engine::memory_left_by_groups(folder.path()));
  write(group / "memory.limit_in_bytes", "3000000000\n");  // more than is free
  CHECK(engine::memory_left_by_groups(folder.path()) == 2700000000);
}

TEST_CASE("what a process touches is resident, and was at most as much as at its peak") {
  const Index before = engine::resident_bytes();
  const std::vector<char> touched(32 << 20, 1);
  CHECK(before > 1 << 20);
  CHECK(engine::resident_bytes() >= before + (16 << 20));
  CHECK(engine::peak_resident_bytes() >= engine::resident_bytes());
  CHECK(touched.back() == 1);
}

TEST_CASE("shared memory that a process touches is resident and shared") {
  constexpr std::size_t kBytes = 8 << 20;
  const Index before = engine::resident_shared_bytes();
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::memset(memory, 1, kBytes / 2);
  const Index touched = engine::resident_shared_bytes() - before;
  ::munmap(memory, kBytes);
  CHECK(touched >= static_cast<Index>(kBytes) / 2);
  CHECK(touched < static_cast<Index>(kBytes));
}

TEST_CASE("this machine has memory") {
  CHECK(free_memory_bytes() > 1 << 20);
}

}  // namespace
