#include "engine/supervisor/world_start.h"

#include <map>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("a profile has a row for each rank of each host, in the order of the host file") {
  const std::vector<Host> hosts{{"pi1", 1}, {"pi2", 4}, {"pi3", 2}};
  using Rows = std::vector<int>;
  CHECK(profile_rows(hosts, {0, 1, 2}) == Rows{0, 1, 2, 3, 4, 5, 6});
  CHECK(profile_rows(hosts, {2, 0}) == Rows{5, 6, 0});
  CHECK(profile_rows(hosts, {}).empty());
}

TEST_CASE("only files of the folder travel to other devices, by their names") {
  const tests::TemporaryFolder folder;
  const tests::TemporaryFolder elsewhere;
  tests::put_bytes(folder / "partition-0-2.toml", "a partition\n");
  tests::put_bytes(folder / "cluster-0-2.toml", "a profile\n");
  tests::put_bytes(elsewhere / "cluster.toml", "the user's own\n");
  const auto words = [](const std::filesystem::path& partition,
                        const std::filesystem::path& cluster) {
    return std::vector<std::string>{
        "train", "m.cfg", "--partition=" + partition.string(), "--cluster", cluster.string()};
  };
  CHECK(files_named_in(words(folder / "partition-0-2.toml", folder / "cluster-0-2.toml"),
                       folder.path()) ==
        std::map<std::string, std::string>{{"partition-0-2.toml", "a partition\n"},
                                           {"cluster-0-2.toml", "a profile\n"}});
  CHECK(files_named_in(words("auto", elsewhere / "cluster.toml"), folder.path()).empty());
}

}  // namespace tessera::engine
