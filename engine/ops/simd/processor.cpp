#include "engine/ops/simd/processor.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace tessera::engine {

namespace {

constexpr ProcessorId kCortexA55{0x41, 0xd05};

// A number after "0x"; 0 if there is none.
unsigned long hexadecimal(std::string_view text) {
  const std::size_t begin = text.find("0x");
  unsigned long number = 0;
  if (begin != std::string_view::npos) {
    std::from_chars(text.data() + begin + 2, text.data() + text.size(), number, 16);
  }
  return number;
}

void add_kind(const ProcessorId& processor, std::vector<ProcessorId>& kinds) {
  if (processor.part != 0 && std::find(kinds.begin(), kinds.end(), processor) == kinds.end()) {
    kinds.push_back(processor);
  }
}

// Bits 24 to 31 of the main identification register are the implementer, 4 to 15 the part (Arm
// Architecture Reference Manual, MIDR_EL1).
std::vector<ProcessorId> from_registers(const std::filesystem::path& processors) {
  std::vector<ProcessorId> kinds;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(processors, none)) {
    std::ifstream file(entry.path() / "regs/identification/midr_el1");
    std::string text;
    if (file >> text) {
      const unsigned long bits = hexadecimal(text);
      add_kind({static_cast<unsigned>(bits >> 24 & 0xff), static_cast<unsigned>(bits >> 4 & 0xfff)},
               kinds);
    }
  }
  return kinds;
}

// Lines "CPU implementer : 0x41" and "CPU part : 0xd03", in this order for each processor.
std::vector<ProcessorId> from_list(const std::filesystem::path& list) {
  std::vector<ProcessorId> kinds;
  std::ifstream file(list);
  ProcessorId processor;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("CPU implementer")) {
      processor.implementer = static_cast<unsigned>(hexadecimal(line));
    } else if (line.starts_with("CPU part")) {
      processor.part = static_cast<unsigned>(hexadecimal(line));
      add_kind(processor, kinds);
    }
  }
  return kinds;
}

}  // namespace

std::vector<ProcessorId> processor_ids(const std::filesystem::path& root) {
  std::vector<ProcessorId> kinds = from_registers(root / "sys/devices/system/cpu");
  return kinds.empty() ? from_list(root / "proc/cpuinfo") : kinds;
}

bool starts_in_order(const ProcessorId& processor) {
  return processor == kCortexA53 || processor == kCortexA55;
}

}  // namespace tessera::engine
