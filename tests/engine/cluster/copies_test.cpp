#include "engine/cluster/copies.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

const std::vector<Host> kThree{{"pi1", 1}, {"pi2", 2}, {"pi3", 1}};

}  // namespace

TEST_CASE("a data set that all ranks read goes to each device once") {
  CHECK(copies_of_data(kThree, {.path = "/photos"}) ==
        std::vector<Copy>{{0, "/photos"}, {1, "/photos"}, {2, "/photos"}});
  CHECK(copies_of_data(kThree, {.path = ""}).empty());
}

TEST_CASE("data of a rank goes to the device of that rank") {
  CHECK(copies_of_data(kThree, {.path = "/photos-{rank}"}) ==
        std::vector<Copy>{{0, "/photos-0"}, {1, "/photos-1"}, {1, "/photos-2"}, {2, "/photos-3"}});
}

TEST_CASE("ranks without samples in a data map need no data") {
  partitioner::DataMap map{.before = {5, 0, 3, 0}, .moves = {}};
  CHECK(copies_of_data(kThree, {.path = "/photos-{rank}", .map = map}) ==
        std::vector<Copy>{{0, "/photos-0"}, {1, "/photos-2"}});
  CHECK_THROWS_AS((void)copies_of_data(kThree, {.path = "/photos", .map = map}), InputError);
  map.before.push_back(1);
  CHECK_THROWS_AS((void)copies_of_data(kThree, {.path = "/photos-{rank}", .map = map}), InputError);
}

TEST_CASE("rsync is given hosts and paths that no shell takes for something else") {
  const auto words = rsync_words({.remote_shell = "/a b/it's",
                                  .host = "fe80::1%eth0",
                                  .path = "/x/$(y) z",
                                  .is_folder = true});
  CHECK(words.back() == "[fe80::1%eth0]:/x/$(y) z/");
  CHECK(words[words.size() - 2] == "/x/$(y) z/");
  CHECK(words[words.size() - 3] == "--");
  const auto has = [&](const std::string& word) {
    return std::count(words.begin(), words.end(), word) == 1;
  };
  CHECK(has("--rsh='/a b/it''s'"));
  CHECK(has("-s"));
  CHECK_FALSE(has("--dry-run"));
  const auto dry =
      rsync_words({.remote_shell = "ssh", .host = "pi2", .path = "/x", .dry_run = true});
  CHECK(std::count(dry.begin(), dry.end(), "--dry-run") == 1);
  CHECK(dry.back() == "pi2:/x");
}

TEST_CASE("what rsync says of files is counted, the rest is not") {
  CHECK(copied_bytes("<f+++++++++ 1234") == 1234);
  CHECK(copied_bytes("<f..t...... 0") == 0);
  CHECK_FALSE(copied_bytes("cd+++++++++ 4096"));
  CHECK_FALSE(copied_bytes(".f...p..... 4096"));
  CHECK_FALSE(copied_bytes("<f"));
  CHECK_FALSE(copied_bytes("<f+++ many"));
}

TEST_CASE("what is newer over there is left as it is, unless it is to be overwritten") {
  const auto has = [](const RsyncCall& call, const char* word) {
    const auto words = rsync_words(call);
    return std::count(words.begin(), words.end(), word) == 1;
  };
  CHECK(has({.remote_shell = "ssh", .host = "pi2", .path = "/x"}, "--update"));
  CHECK_FALSE(
      has({.remote_shell = "ssh", .host = "pi2", .path = "/x", .overwrite = true}, "--update"));
  for (const RsyncPass pass : {RsyncPass::FindNewer, RsyncPass::Compare}) {
    CHECK(has({.remote_shell = "ssh", .host = "pi2", .path = "/x", .pass = pass}, "--dry-run"));
  }
  CHECK(newer_file("sub/my file is newer") == "sub/my file");
  CHECK_FALSE(newer_file("<f+++++++++ 1234"));
  CHECK(different_file("<fcst...... sub/my file") == "sub/my file");
  CHECK_FALSE(different_file("<f+++++++++ sub/new"));
  CHECK_FALSE(different_file(".f..t...... touched"));
}

TEST_CASE("libraries that ldd does not find are known") {
  CHECK(missing_library("\tlibfmt.so.9 => not found") == "libfmt.so.9");
  CHECK(missing_library("\tlibc.so.6 => /lib/libc.so.6 (0x0)").empty());
  CHECK(missing_library("").empty());
}

}  // namespace tessera::engine
