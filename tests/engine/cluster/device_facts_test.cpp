#include "engine/cluster/device_facts.h"

#include <doctest/doctest.h>

namespace tessera::engine {

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
