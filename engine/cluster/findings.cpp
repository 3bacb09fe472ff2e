#include "engine/cluster/findings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

constexpr Index kMebibyte = Index{1} << 20U;

// Clocks further apart than this make times of log files and of copied files misleading.
constexpr double kMostClockOffset_s = 1;
constexpr Index kLittleMemory = 200 * kMebibyte;
constexpr Index kLittleDisk = 1024 * kMebibyte;
constexpr Index kNoDisk = 50 * kMebibyte;
constexpr Index kLittleSharedMemory = 64 * kMebibyte;  // `tessera run` keeps state there
constexpr double kWarm_c = 75;                         // a Raspberry Pi slows down from 80
constexpr double kHot_c = 80;
constexpr double kSlowLink_bits_per_s = 90e6;
constexpr double kLongRoundTrip_s = 5e-3;
constexpr double kLittleOfLink = 0.6;  // of what its interfaces have negotiated
constexpr double kMuchSlower = 5;      // than the fastest link
constexpr double kBitsPerByte = 8;

class Judge {
 public:
  explicit Judge(const Examination& examination) : examination_(examination) {}

  std::vector<Finding> all();
  void judge_shell(int device);
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  void problem(std::string subject, std::string what, std::string remedy) {
    findings_.push_back({device_, true, std::move(subject), std::move(what), std::move(remedy)});
  }
  void warning(std::string subject, std::string what, std::string remedy) {
    findings_.push_back({device_, false, std::move(subject), std::move(what), std::move(remedy)});
  }

  void judge_place();
  void judge_own_name();
  void judge_name(const ExaminedDevice& device);
  void judge_origin_name(const ExaminedDevice& device);
  void judge_program(const ExaminedDevice& device);
  void judge_answer(const ExaminedDevice& device);
  void judge_likeness(int place);
  void judge_memory(const DeviceFacts& facts);
  void judge_folder(const DeviceFacts& facts, bool is_first);
  void judge_processor(const DeviceFacts& facts);
  void judge_throttling(long flags);
  void judge_links();
  void judge_link(const ExaminedLink& link, const ExaminedLink& fastest);

  [[nodiscard]] const ExaminedDevice& at(int device) const {
    return examination_.devices[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] std::string shell_and(const std::string& host) const {
    return fmt::format("{} {}", examination_.remote_shell, host);
  }

  const Examination& examination_;
  int device_ = -1;
  std::vector<Finding> findings_;
};

const std::vector<std::string>& addresses_in(const ExaminedDevice& device,
                                             const std::string& name) {
  static const std::vector<std::string> none;
  const auto found = device.names.find(name);
  return found == device.names.end() ? none : found->second;
}

bool is_of(const std::string& address, const ExaminedDevice& device) {
  return std::any_of(device.addresses.begin(),
                     device.addresses.end(),
                     [&](const of_device::Address& own) { return own.address == address; });
}

std::string own_addresses(const ExaminedDevice& device) {
  std::vector<std::string> all;
  for (const of_device::Address& own : device.addresses) {
    all.push_back(own.address);
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

const of_device::Address* interface_of_device(const ExaminedDevice& device) {
  for (const of_device::Address& own : device.addresses) {
    if (own.address == device.address) {
      return &own;
    }
  }
  return nullptr;
}

std::string megabits(double bits_per_s) {
  return fmt::format("{} Mbit/s", three_digits(1e-6 * bits_per_s));
}

void Judge::judge_shell(int place) {
  device_ = place;
  const ExaminedDevice& device = at(place);
  const std::string& name = device.host.name;
  const std::string said = device.shell_said.empty() ? "nothing" : device.shell_said;
  switch (device.trouble) {
    case ShellTrouble::None:
      break;
    case ShellTrouble::UnknownName:
      problem("name",
              fmt::format("the name {} does not resolve to an address", name),
              fmt::format("add a line \"ADDRESS {}\" to /etc/hosts, on every device", name));
      break;
    case ShellTrouble::Unreachable:
      problem("ssh",
              fmt::format("{} cannot be reached ({})", name, said),
              "is it switched on, is its cable plugged in, and is that its address? `ping " + name +
                  "` has to be answered");
      break;
    case ShellTrouble::Refused:
      problem("ssh",
              fmt::format("{} answers, but has no ssh server", name),
              "there: sudo systemctl enable --now ssh (package openssh-server)");
      break;
    case ShellTrouble::UnknownKey:
      problem("ssh",
              fmt::format("the host key of {} is not known yet", name),
              fmt::format("once by hand: {}, and confirm its fingerprint", shell_and(name)));
      break;
    case ShellTrouble::ChangedKey:
      problem("ssh",
              fmt::format("the host key of {} is another one than before", name),
              fmt::format("if it was installed anew: ssh-keygen -R {}; otherwise another machine "
                          "answers by its name",
                          name));
      break;
    case ShellTrouble::Denied:
      problem("ssh",
              fmt::format("{} lets nobody in without a password ({})", name, said),
              fmt::format("ssh-copy-id {} (without a key of your own: ssh-keygen first)", name));
      break;
    case ShellTrouble::NotStarted:
      problem("ssh",
              fmt::format("there is no program {} here", examination_.remote_shell),
              "sudo apt-get install openssh-client, or give --remote-shell what is there");
      break;
    case ShellTrouble::Silent:
      problem("ssh",
              fmt::format("{} does not answer in time", shell_and(name)),
              fmt::format("`{} true` has to end at once and without a question", shell_and(name)));
      break;
    case ShellTrouble::Other:
      problem("ssh",
              fmt::format("`{}` does not work: {}", shell_and(name), said),
              fmt::format("`{} true` has to work without a question", shell_and(name)));
      break;
  }
}

void Judge::judge_place() {
  const bool there = std::any_of(examination_.devices.begin(),
                                 examination_.devices.end(),
                                 [](const ExaminedDevice& device) { return device.is_here; });
  if (!there) {
    warning("place",
            fmt::format("this machine, {}, is not in the host file",
                        examination_.origin.facts->host_name),
            "start mpiexec and this command on the first device of the host file");
  } else if (!examination_.devices[0].is_here) {
    warning("place",
            fmt::format("this machine is not the first of the host file: rank 0, which writes the "
                        "run folder, is on {}",
                        examination_.devices[0].host.name),
            "start mpiexec and this command on the first device of the host file");
  }
}

// mpiexec tells the devices the name of its machine, to which they connect.
void Judge::judge_own_name() {
  const std::string& name = examination_.origin.facts->host_name;
  const auto& addresses = addresses_in(examination_.origin, name);
  if (examination_.devices.size() == 1) {
    return;
  }
  if (addresses.empty()) {
    problem("name",
            fmt::format("the own name of this machine, {}, does not resolve", name),
            fmt::format("add a line \"ADDRESS {}\" to /etc/hosts, with its address in the cluster",
                        name));
  } else if (is_loopback_address(addresses.front())) {
    problem("name",
            fmt::format("the own name of this machine, {}, resolves to {}: other devices cannot "
                        "reach it by that",
                        name,
                        addresses.front()),
            fmt::format("in its /etc/hosts put its address in the cluster in place of {} (or give "
                        "mpiexec -localhost ADDRESS)",
                        addresses.front()));
  }
}

void Judge::judge_name(const ExaminedDevice& device) {
  const std::string& name = device.host.name;
  const auto& addresses = addresses_in(examination_.origin, name);
  if (device.trouble == ShellTrouble::UnknownName) {
    return;  // has been said
  }
  if (addresses.empty()) {
    problem("name",
            fmt::format("the name {} does not resolve to an address", name),
            fmt::format("add a line \"ADDRESS {}\" to /etc/hosts, on every device", name));
  } else if (!device.is_here && is_loopback_address(addresses.front())) {
    problem("name",
            fmt::format("{} resolves to {} here, which is this machine", name, addresses.front()),
            "correct its line in /etc/hosts of this machine");
  } else if (device.facts && !device.addresses.empty() &&
             std::none_of(addresses.begin(), addresses.end(), [&](const std::string& address) {
               return is_of(address, device) || is_loopback_address(address);
             })) {
    problem("name",
            fmt::format("{} resolves to {} here, but the machine that answers has {}",
                        name,
                        addresses.front(),
                        own_addresses(device)),
            "correct its line in /etc/hosts of this machine");
  }
}

// On another device: what that makes of the names of this machine and of itself.
void Judge::judge_origin_name(const ExaminedDevice& device) {
  const ExaminedDevice& origin = examination_.origin;
  const std::string& name = origin.facts->host_name;
  const auto& own = addresses_in(origin, name);
  if (device.names.empty() || own.empty() || is_loopback_address(own.front())) {
    return;
  }
  const auto& there = addresses_in(device, name);
  if (there.empty()) {
    problem("name",
            fmt::format("{} does not resolve the name of this machine, {}", device.host.name, name),
            fmt::format("there: add a line \"{} {}\" to /etc/hosts", own.front(), name));
  } else if (std::none_of(there.begin(), there.end(), [&](const std::string& address) {
               return is_of(address, origin);
             })) {
    problem("name",
            fmt::format("{} resolves the name of this machine, {}, to {}",
                        device.host.name,
                        name,
                        there.front()),
            fmt::format("there: put {} in place of it in /etc/hosts", own.front()));
  }
  const auto& itself = addresses_in(device, device.host.name);
  if (!itself.empty() && is_loopback_address(itself.front())) {
    warning("name",
            fmt::format("on {} its own name resolves to {}", device.host.name, itself.front()),
            "there: put its address in the cluster in place of it in /etc/hosts, or ranks on it "
            "may tell others that one");
  }
}

void Judge::judge_answer(const ExaminedDevice& device) {
  const std::string& name = device.host.name;
  const std::string copy = "tessera deploy --hostfile FILE copies it";
  const auto says = [&](const char* text) {
    return device.shell_said.find(text) != std::string::npos;
  };
  if (device.shell->program == "missing") {
    problem("program", fmt::format("{} has no {}", name, examination_.program), copy);
  } else if (device.shell->program == "unusable") {
    problem(
        "program",
        fmt::format("{} on {} is no program that this user may start", examination_.program, name),
        copy);
  } else if (says("shared librar")) {
    problem("program",
            fmt::format("the program lacks a library on {}: {}", name, device.shell_said),
            "install there the packages that quickstart.sh names; `ldd " + examination_.program +
                "` lists what is missing");
  } else if (says("xec format")) {
    problem("program",
            fmt::format("the program on {} is made for other processors than its {}",
                        name,
                        device.shell->architecture),
            "build it there: ./quickstart.sh");
  } else {
    problem("program",
            fmt::format("{} on {} is another version, or another program{}",
                        examination_.program,
                        name,
                        device.shell_said.empty() ? "" : ": " + device.shell_said),
            copy);
  }
}

void Judge::judge_program(const ExaminedDevice& device) {
  if (!device.facts) {
    judge_answer(device);
    if (!device.shell->has_folder) {
      problem("folder",
              fmt::format("{} has no folder {}", device.host.name, examination_.folder),
              "there: mkdir -p " + examination_.folder);
    }
    return;
  }
  const DeviceFacts& own = *examination_.origin.facts;
  const DeviceFacts& facts = *device.facts;
  const std::string& name = device.host.name;
  if (facts.version != own.version) {
    problem("program",
            fmt::format("{} has another version of the program: {}; here: {}",
                        name,
                        facts.version,
                        own.version),
            "tessera deploy --hostfile FILE copies this one, or build it there anew");
  }
  if (facts.word_bits != own.word_bits) {
    problem("program",
            fmt::format("the program on {} is one of {} bits, here of {}: MPICH does not convert "
                        "between them",
                        name,
                        facts.word_bits,
                        own.word_bits),
            "install the same kind of system on all devices");
  } else if (facts.mpi != own.mpi) {
    problem("mpi",
            fmt::format("{} has {}, here is {}", name, facts.mpi, own.mpi),
            "install the same release of the distribution on all devices");
  }
  if (!facts.has_launcher) {
    problem("mpi",
            fmt::format("{} lacks hydra_pmi_proxy, which mpiexec starts on it", name),
            "there: sudo apt-get install mpich");
  }
}

void Judge::judge_likeness(int place) {
  const ExaminedDevice& device = at(place);
  for (int before = 0; before < place; ++before) {
    const ExaminedDevice& other = at(before);
    if (!other.facts || other.facts->host_name != device.facts->host_name) {
      continue;
    }
    if (is_same_machine(*device.facts, *other.facts)) {
      problem("host-file",
              fmt::format("{} and {} are the same machine", other.host.name, device.host.name),
              "name it once in the host file, with as many ranks as it is to have: HOST:RANKS");
    } else {
      warning("name",
              fmt::format("{} and {} both call themselves {}",
                          other.host.name,
                          device.host.name,
                          device.facts->host_name),
              fmt::format("on one of them: sudo hostnamectl set-hostname {}", device.host.name));
    }
    return;
  }
}

void Judge::judge_memory(const DeviceFacts& facts) {
  const std::string& name = at(device_).host.name;
  if (facts.free_memory_bytes < kLittleMemory) {
    warning("memory",
            fmt::format("{} has only {} of free memory, of {}",
                        name,
                        readable_bytes(facts.free_memory_bytes),
                        readable_bytes(facts.memory_bytes)),
            "end what else runs there; a system without a desktop leaves more");
  }
  if (facts.swap_bytes > 0 && facts.swaps_to_card) {
    warning("swap",
            fmt::format("{} swaps to an SD card, which wears it out and stops training for seconds",
                        name),
            "there: sudo systemctl disable --now dphys-swapfile");
  }
  if (facts.shared_memory_free_bytes < kLittleSharedMemory) {
    warning(
        "memory",
        fmt::format("/dev/shm of {} has only {} left",
                    name,
                    readable_bytes(facts.shared_memory_free_bytes)),
        "remove what is left in it, or make it larger: sudo mount -o remount,size=50% /dev/shm");
  }
}

void Judge::judge_folder(const DeviceFacts& facts, bool is_first) {
  const std::string& name = at(device_).host.name;
  const std::string& folder = examination_.folder;
  if (!facts.folder_exists) {
    problem("folder",
            fmt::format("{} has no folder {}, in which its ranks are started", name, folder),
            "there: mkdir -p " + folder);
    return;
  }
  if (is_first && !facts.folder_writable) {
    warning("folder",
            fmt::format(
                "{} cannot be written to on {}, whose rank writes the run folder", folder, name),
            "give --run a folder that can be");
  }
  if (facts.folder_free_bytes < (is_first ? kLittleDisk : kNoDisk)) {
    warning("disk",
            fmt::format("the disk of {} on {} has only {} left",
                        folder,
                        name,
                        readable_bytes(facts.folder_free_bytes)),
            "make room: checkpoints and logs go there");
  }
}

void Judge::judge_processor(const DeviceFacts& facts) {
  const std::string& name = at(device_).host.name;
  if (facts.governor == "powersave") {
    warning(
        "governor",
        fmt::format("the processor of {} is kept at its lowest clock (governor powersave)", name),
        "there: echo performance | sudo tee "
        "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
  }
  if (facts.processors > 0 && facts.load > 0.5 * static_cast<double>(facts.processors)) {
    warning("load",
            fmt::format("{} is busy: {:.1f} processes wanted its {} in the last minute",
                        name,
                        facts.load,
                        counted(facts.processors, "processor")),
            "end what else runs there: all devices wait for the slowest");
  }
  if (facts.temperature_c && *facts.temperature_c >= kWarm_c) {
    const bool hot = *facts.temperature_c >= kHot_c;
    findings_.push_back({device_,
                         hot,
                         "temperature",
                         fmt::format("the processor of {} has {:.0f} °C{}",
                                     name,
                                     *facts.temperature_c,
                                     hot ? ", at which it slows down" : ""),
                         "a heat sink or a fan, and room for air"});
  }
  if (facts.throttled) {
    judge_throttling(*facts.throttled);
  }
}

// The bits of BoardSensors::throttled().
void Judge::judge_throttling(long flags) {
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
    const std::string& name = at(device_).host.name;
    if (is_set(flag.bit)) {
      problem(flag.subject, fmt::format("{} {}", name, flag.now), flag.remedy);
    } else if (is_set(flag.bit + kBefore)) {
      warning(flag.subject, fmt::format("{} {}", name, flag.before), flag.remedy);
    }
  }
}

double least_bits_per_s(const ExaminedLink& link) {
  return kBitsPerByte * std::min(link.forward_bytes_per_s, link.back_bytes_per_s);
}

// `fastest`: of all links.
void Judge::judge_link(const ExaminedLink& link, const ExaminedLink& fastest) {
  const ExaminedDevice& a = at(link.a);
  const ExaminedDevice& b = at(link.b);
  device_ = link.b;
  if (!link.problem.empty()) {
    problem(
        "link",
        fmt::format(
            "{} cannot connect to {} at {}: {}", a.host.name, b.host.name, b.address, link.problem),
        "does a firewall keep them apart? Ranks connect at ports from 32768 to 60999");
    return;
  }
  if (link.round_trip_s > kLongRoundTrip_s) {
    warning("link",
            fmt::format("between {} and {} a round trip takes {} ms",
                        a.host.name,
                        b.host.name,
                        three_digits(1e3 * link.round_trip_s)),
            "cables rather than Wi-Fi, and one switch for all");
  }
  const double least = least_bits_per_s(link);
  double negotiated = 0;
  bool wireless = false;
  for (const ExaminedDevice* device : {&a, &b}) {
    const of_device::Address* own = interface_of_device(*device);
    wireless = wireless || (own != nullptr && own->wireless);
    if (own != nullptr && own->bits_per_s) {
      negotiated = negotiated > 0 ? std::min(negotiated, *own->bits_per_s) : *own->bits_per_s;
    }
  }
  // What is faster than the slowest interface of a Raspberry Pi may well be limited by processors.
  const bool little = negotiated > 0 && negotiated <= 1.2 * kSlowLink_bits_per_s &&
                      least < kLittleOfLink * negotiated;
  if (little) {
    warning("link",
            fmt::format("between {} and {} go only {} of {}",
                        a.host.name,
                        b.host.name,
                        megabits(least),
                        megabits(negotiated)),
            "try another cable and another port of the switch; was the network in use?");
    return;
  }
  const double times = least_bits_per_s(fastest) / least;
  // An interface that is slow, or Wi-Fi, has been told of.
  if (times > kMuchSlower && !wireless && (negotiated == 0 || least < kLittleOfLink * negotiated)) {
    warning("link",
            fmt::format("between {} and {} go only {}, {:.0f} times less than between {} and {}",
                        a.host.name,
                        b.host.name,
                        megabits(least),
                        times,
                        at(fastest.a).host.name,
                        at(fastest.b).host.name),
            "all devices wait for the slowest link: try another cable and another port of the "
            "switch; was the network in use?");
  }
}

void Judge::judge_links() {
  for (int i = 0; i < static_cast<int>(examination_.devices.size()); ++i) {
    device_ = i;
    const ExaminedDevice& device = at(i);
    const of_device::Address* own = interface_of_device(device);
    if (own == nullptr || examination_.devices.size() == 1) {
      continue;
    }
    if (own->wireless) {
      warning("link",
              fmt::format("{} is connected by Wi-Fi ({})", device.host.name, own->interface),
              "a cable: Wi-Fi is slower, and all devices share it");
    } else if (own->bits_per_s && *own->bits_per_s < kSlowLink_bits_per_s) {
      warning("link",
              fmt::format("{} of {} has negotiated only {}",
                          own->interface,
                          device.host.name,
                          megabits(*own->bits_per_s)),
              "try another cable and another port of the switch");
    }
  }
  const auto fastest = std::max_element(examination_.links.begin(),
                                        examination_.links.end(),
                                        [](const ExaminedLink& one, const ExaminedLink& other) {
                                          return least_bits_per_s(one) < least_bits_per_s(other);
                                        });
  for (const ExaminedLink& link : examination_.links) {
    judge_link(link, *fastest);
  }
}

std::vector<Finding> Judge::all() {
  judge_place();
  judge_own_name();
  for (int i = 0; i < static_cast<int>(examination_.devices.size()); ++i) {
    judge_shell(i);
    const ExaminedDevice& device = at(i);
    judge_name(device);
    if (!device.shell && !device.facts) {
      continue;
    }
    if (device.is_noisy && !device.is_here) {
      warning("ssh",
              fmt::format("the shell of {} prints something before a command starts, which rsync "
                          "does not take",
                          device.host.name),
              "there: let ~/.bashrc print nothing where there is no terminal");
    }
    judge_program(device);
    if (!device.facts) {
      continue;
    }
    judge_likeness(i);
    if (!device.is_here) {
      judge_origin_name(device);
    }
    if (device.clock_offset_s &&
        std::abs(*device.clock_offset_s) - device.clock_error_s > kMostClockOffset_s) {
      problem("clock",
              fmt::format("the clock of {} is {} s {} that of this machine",
                          device.host.name,
                          three_digits(std::abs(*device.clock_offset_s)),
                          *device.clock_offset_s > 0 ? "ahead of" : "behind"),
              "on both: sudo timedatectl set-ntp true (package systemd-timesyncd)");
    }
    judge_memory(*device.facts);
    judge_folder(*device.facts, i == 0);
    judge_processor(*device.facts);
  }
  judge_links();
  std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
    return a.device < b.device;
  });
  return take();
}

}  // namespace

std::vector<Finding> findings_of(const Examination& examination) {
  return Judge(examination).all();
}

std::vector<Finding> findings_of_shell(const Examination& examination, int device) {
  Judge judge(examination);
  judge.judge_shell(device);
  return judge.take();
}

}  // namespace tessera::engine
