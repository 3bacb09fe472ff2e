#include "engine/system/limits.h"

#include <sys/resource.h>

#include "tests/support/fake_tree.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("the group that its quota stopped most is found, in both versions of control groups") {
  const tests::FakeTree tree;
  CHECK_FALSE(quota_periods(tree.root()));
  tree.write("proc/self/cgroup", "0::/a/b\n");
  tree.write("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 7\nnr_periods 0\nnr_throttled 0\n");
  CHECK_FALSE(quota_periods(tree.root()));  // no quota
  tree.write("sys/fs/cgroup/a/cpu.stat", "usage_usec 7\nnr_periods 100\nnr_throttled 30\n");
  const auto before = quota_periods(tree.root());
  REQUIRE(before);
  CHECK(before->periods == 100);
  CHECK(before->throttled == 30);
  tree.write("proc/self/cgroup", "4:cpu,cpuacct:/c\n3:memory:/d\n");
  tree.write("sys/fs/cgroup/cpu/c/cpu.stat", "nr_periods 300\nnr_throttled 180\n");
  const auto after = quota_periods(tree.root());
  REQUIRE(after);
  CHECK(after->throttled_share(*before) == 0.75);
  CHECK(after->throttled_share(*after) == 0);
}

TEST_CASE("the least number of threads that a control group allows is named") {
  const tests::FakeTree tree;
  tree.write("proc/self/cgroup", "8:pids:/a/b\n0::/\n");
  tree.write("sys/fs/cgroup/pids/a/b/pids.max", "max\n");
  CHECK_FALSE(tests::has(thread_limits(tree.root()), "pids.max"));
  tree.write("sys/fs/cgroup/pids/a/pids.max", "30\n");
  CHECK(tests::has(thread_limits(tree.root()), "its control group"));
  CHECK(tests::has(thread_limits(tree.root()), "30 (pids.max)"));
}

TEST_CASE("a limit of this process that is a tight one is named") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit tight = before;
  tight.rlim_cur = 3 << 20;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  CHECK(tests::has(tight_limits(), "`ulimit -f` allows 3.0 MiB in a file"));
  CHECK_NOTHROW(expect_enough_for_any_program());
  ::setrlimit(RLIMIT_FSIZE, &before);
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  tight = before;
  tight.rlim_cur = 20;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
  CHECK(tests::has(tests::input_error_of([] { expect_enough_for_any_program(); }), "ulimit -n"));
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("threads that the system starts are no error") {
  CHECK_NOTHROW(expect_startable_threads(1));
  CHECK_NOTHROW(expect_startable_threads(4));
}

TEST_CASE("the rate of an interface is known where it has negotiated one") {
  const tests::FakeTree tree;
  CHECK_FALSE(negotiated_bits_per_s("eth0", tree.root()));
  tree.write("sys/class/net/eth0/speed", "100\n");
  CHECK(negotiated_bits_per_s("eth0", tree.root()) == 1e8);
  tree.write("sys/class/net/wlan0/speed", "-1\n");
  CHECK_FALSE(negotiated_bits_per_s("wlan0", tree.root()));
}

}  // namespace tessera::engine
