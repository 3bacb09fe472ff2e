#include "engine/setup/device_facts.h"

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("facts of a device come back from JSON as they were") {
  const DeviceFacts facts{.host_name = "pi2",
                          .boot = "b",
                          .version = "v",
                          .mpi = "m",
                          .architecture = "armv7l",
                          .word_bits = 32,
                          .has_launcher = true,
                          .memory_bytes = 5,
                          .free_memory_bytes = 4,
                          .swap_bytes = 3,
                          .swaps_to_card = true,
                          .processors = 4,
                          .load = 0.5,
                          .folder_exists = true,
                          .folder_writable = true,
                          .folder_free_bytes = 7,
                          .storage = Storage::Usb,
                          .shared_memory_free_bytes = 9,
                          .governor = "powersave",
                          .temperature_c = 61.5,
                          .throttled = 0x50005};
  CHECK(device_facts_in(to_json(facts)) == facts);
  DeviceFacts few = facts;
  few.temperature_c.reset();
  few.throttled.reset();
  CHECK(device_facts_in(to_json(few)) == few);
}

TEST_CASE("facts of another kind than expected are left out") {
  nlohmann::json message = to_json(DeviceFacts{.host_name = "pi2"});
  message["word_bits"] = "many";
  message["has_launcher"] = 1;
  message["load"] = nullptr;
  message["mpi"] = nlohmann::json::array();
  message["storage"] = "cheese";
  message["free_memory_bytes"] = 1e300;
  message["throttled"] = 1e300;
  message["temperature_c"] = "hot";
  CHECK(device_facts_in(message) == DeviceFacts{.host_name = "pi2"});
  CHECK(device_facts_in(nlohmann::json::object()) == DeviceFacts{});
}

TEST_CASE("the kind of a disk is known by its path in the system's tree") {
  CHECK(storage_kind("ext4",
                     "/sys/devices/platform/soc/3f202000.mmc/mmc_host/mmc0/mmc0:59b4/block/"
                     "mmcblk0/mmcblk0p2") == Storage::Card);
  CHECK(storage_kind("ext4",
                     "/sys/devices/platform/scb/fd500000.pcie/pci0000:00/usb2/2-1/host0/block/sda/"
                     "sda1") == Storage::Usb);
  CHECK(storage_kind("ext4", "/sys/devices/pci0000:00/nvme/nvme0/nvme0n1/nvme0n1p1") ==
        Storage::Disk);
  CHECK(storage_kind("nfs4", "") == Storage::Network);
  CHECK(storage_kind("tmpfs", "") == Storage::Memory);
  CHECK(storage_kind("overlay", "") == Storage::Unknown);
}

TEST_CASE("this machine can be looked at") {
  const DeviceFacts facts = look_at_device("/", "v");
  CHECK_FALSE(facts.host_name.empty());
  CHECK(facts.memory_bytes > 0);
  CHECK(facts.free_memory_bytes > 0);
  CHECK(facts.folder_exists);
  CHECK(facts.word_bits == 8 * static_cast<int>(sizeof(void*)));
  CHECK(facts.mpi.rfind("MPICH ", 0) == 0);
  CHECK_FALSE(look_at_device("/no/such/folder", "v").folder_exists);
}

}  // namespace tessera::engine
