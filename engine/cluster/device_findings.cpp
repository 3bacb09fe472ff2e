#include <array>
#include <fmt/format.h>

#include "engine/cluster/finding_list.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

constexpr Index kMebibyte = Index{1} << 20U;

constexpr Index kLittleMemory = 200 * kMebibyte;
constexpr Index kLittleDisk = 1024 * kMebibyte;
constexpr Index kNoDisk = 50 * kMebibyte;
constexpr Index kLittleSharedMemory = 64 * kMebibyte;  // `tessera run` keeps state there
constexpr double kWarm_c = 75;                         // a Raspberry Pi slows down from 80
constexpr double kHot_c = 80;

void judge_memory(const std::string& name, const DeviceFacts& facts, FindingList& findings) {
  if (facts.free_memory_bytes < kLittleMemory) {
    findings.warning("memory",
                     fmt::format("{} has only {} of free memory, of {}",
                                 name,
                                 readable_bytes(facts.free_memory_bytes),
                                 readable_bytes(facts.memory_bytes)),
                     "end what else runs there; a system without a desktop leaves more");
  }
  if (facts.swap_bytes > 0 && facts.swaps_to_card) {
    findings.warning(
        "swap",
        fmt::format("{} swaps to an SD card, which wears it out and stops training for seconds",
                    name),
        "there: sudo systemctl disable --now dphys-swapfile");
  }
  if (facts.shared_memory_free_bytes < kLittleSharedMemory) {
    findings.warning(
        "memory",
        fmt::format("/dev/shm of {} has only {} left",
                    name,
                    readable_bytes(facts.shared_memory_free_bytes)),
        "remove what is left in it, or make it larger: sudo mount -o remount,size=50% /dev/shm");
  }
}

void judge_folder(const std::string& name,
                  const DeviceFacts& facts,
                  const std::string& folder,
                  bool is_first,
                  FindingList& findings) {
  if (!facts.folder_exists) {
    findings.problem(
        "folder",
        fmt::format("{} has no folder {}, in which its ranks are started", name, folder),
        "there: mkdir -p " + folder);
    return;
  }
  if (is_first && !facts.folder_writable) {
    findings.warning(
        "folder",
        fmt::format(
            "{} cannot be written to on {}, whose rank writes the run folder", folder, name),
        "give --run a folder that can be");
  }
  if (facts.folder_free_bytes < (is_first ? kLittleDisk : kNoDisk)) {
    findings.warning("disk",
                     fmt::format("the disk of {} on {} has only {} left",
                                 folder,
                                 name,
                                 readable_bytes(facts.folder_free_bytes)),
                     "make room: checkpoints and logs go there");
  }
}

// The bits of BoardSensors::throttled().
void judge_throttling(const std::string& name, long flags, FindingList& findings) {
  struct Flag {
    int bit;
    const char* subject;
    const char* now;
    const char* before;
    const char* remedy;
  };
  constexpr int kBefore = 16;
  constexpr std::array<Flag, 2> kFlags{
      {{0,
        "power",
        "gets too little voltage, and slows down",
        "has had too little voltage since it was started",
        "a power supply of 5.1 V and enough current (Pi 3: 2.5 A, Pi 4: 3 A, Pi 5: 5 A), and a "
        "short cable"},
       {2,
        "throttling",
        "is throttled",
        "has been throttled since it was started",
        "a heat sink or a fan, and a power supply that is strong enough"}}};
  const auto is_set = [&](int bit) { return ((flags >> bit) & 1) != 0; };
  for (const Flag& flag : kFlags) {
    if (is_set(flag.bit)) {
      findings.problem(flag.subject, fmt::format("{} {}", name, flag.now), flag.remedy);
    } else if (is_set(flag.bit + kBefore)) {
      findings.warning(flag.subject, fmt::format("{} {}", name, flag.before), flag.remedy);
    }
  }
}

void judge_processor(const std::string& name, const DeviceFacts& facts, FindingList& findings) {
  if (facts.governor == "powersave") {
    findings.warning(
        "governor",
        fmt::format("the processor of {} is kept at its lowest clock (governor powersave)", name),
        "there: echo performance | sudo tee "
        "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
  }
  if (facts.processors > 0 && facts.load > 0.5 * static_cast<double>(facts.processors)) {
    findings.warning("load",
                     fmt::format("{} is busy: {:.1f} processes wanted its {} in the last minute",
                                 name,
                                 facts.load,
                                 counted(facts.processors, "processor")),
                     "end what else runs there: all devices wait for the slowest");
  }
  if (facts.temperature_c && *facts.temperature_c >= kWarm_c) {
    const bool hot = *facts.temperature_c >= kHot_c;
    findings.all.push_back({findings.device,
                            hot,
                            "temperature",
                            fmt::format("the processor of {} has {:.0f} °C{}",
                                        name,
                                        *facts.temperature_c,
                                        hot ? ", at which it slows down" : ""),
                            "a heat sink or a fan, and room for air"});
  }
  if (facts.throttled) {
    judge_throttling(name, *facts.throttled, findings);
  }
}

}  // namespace

void add_findings_of_facts(const ExaminedDevice& device,
                           const std::string& folder,
                           bool is_first,
                           FindingList& findings) {
  const std::string& name = device.host.name;
  judge_memory(name, *device.facts, findings);
  judge_folder(name, *device.facts, folder, is_first, findings);
  judge_processor(name, *device.facts, findings);
}

}  // namespace tessera::engine
