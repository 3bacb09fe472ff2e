// Which processors this machine has, as far as kernels are chosen by that: those of ARM with 64
// bits.

#pragma once

#include <filesystem>
#include <vector>

namespace tessera::engine {

// As in the main identification register: ARM's own designs have the implementer 0x41.
struct ProcessorId {
  unsigned implementer = 0;
  unsigned part = 0;

  friend bool operator==(const ProcessorId&, const ProcessorId&) = default;
};

// Those of Raspberry Pis with 64 bits: 3 and Zero 2, 4, 5.
inline constexpr ProcessorId kCortexA53{0x41, 0xd03};
inline constexpr ProcessorId kCortexA72{0x41, 0xd08};
inline constexpr ProcessorId kCortexA76{0x41, 0xd0b};

// The kinds of processors, without repetition, as Linux tells of them in sys and proc under `root`;
// none where it does not, on other architectures above all.
[[nodiscard]] std::vector<ProcessorId> processor_ids(const std::filesystem::path& root = "/");

// Whether it starts instructions in the order of the program, as Cortex-A53 and A55 do.
[[nodiscard]] bool starts_in_order(const ProcessorId& processor);

}  // namespace tessera::engine
