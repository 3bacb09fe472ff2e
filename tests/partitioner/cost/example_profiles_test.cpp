#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "partitioner/cost/assumed_devices.h"
#include "partitioner/cost/cluster_profile.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using std::filesystem::path;

const path kHostfiles = TESSERA_SOURCE_DIR "/hostfiles";

std::vector<std::string> hosts_of(const path& hostfile) {
  std::vector<std::string> hosts;
  std::ifstream file(hostfile);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') {
      hosts.push_back(line.substr(0, line.find(':')));
    }
  }
  return hosts;
}

TEST_CASE("a profile beside a host file describes its hosts, in the same order") {
  for (const char* name : {"pi3x2",
                           "pi3x4",
                           "pi3x6",
                           "pi4x4",
                           "pi5x4",
                           "pi5x4-1gb",
                           "pi5x6-1gb",
                           "zero2x4",
                           "mixed"}) {
    CAPTURE(name);
    const auto cluster =
        partitioner::read_cluster_profile(kHostfiles / (std::string(name) + ".cluster.toml"));
    std::vector<std::string> names;
    for (const auto& device : cluster.devices) {
      names.push_back(device.name);
    }
    CHECK(names == hosts_of(kHostfiles / name));
  }
}

TEST_CASE("devices that are assumed differ from the Raspberry Pi 3 of an example in names alone") {
  const auto example = partitioner::read_cluster_profile(kHostfiles / "pi3x4.cluster.toml");
  auto assumed = partitioner::assumed_devices(4);
  for (std::size_t i = 0; i < assumed.devices.size(); ++i) {
    CHECK(assumed.devices[i].name == "device" + std::to_string(i));
    assumed.devices[i].name = example.devices[i].name;
  }
  CHECK(assumed == example);
}

}  // namespace
