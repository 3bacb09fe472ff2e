#include "engine/cluster/findings.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/cluster/finding_list.h"
#include "engine/processes/addresses.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// Clocks further apart than this make times of log files and of copied files misleading.
constexpr double kMostClockOffset_s = 1;

class Judge {
 public:
  explicit Judge(const Examination& examination) : examination_(examination) {}

  std::vector<Finding> all();
  void judge_shell(int device);
  std::vector<Finding> take() { return std::move(findings_.all); }

 private:
  void judge_place();
  void judge_own_name();
  void judge_name(const ExaminedDevice& device);
  void judge_origin_name(const ExaminedDevice& device);
  void judge_program(const ExaminedDevice& device);
  void judge_answer(const ExaminedDevice& device);
  void judge_likeness(int place);

  [[nodiscard]] const ExaminedDevice& at(int device) const {
    return examination_.devices[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] std::string shell_and(const std::string& host) const {
    return fmt::format("{} {}", examination_.remote_shell, host);
  }

  const Examination& examination_;
  FindingList findings_;
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

void Judge::judge_shell(int place) {
  findings_.device = place;
  const ExaminedDevice& device = at(place);
  const std::string& name = device.host.name;
  const std::string said = device.shell_said.empty() ? "nothing" : device.shell_said;
  switch (device.trouble) {
    case ShellTrouble::None:
      break;
    case ShellTrouble::UnknownName:
      findings_.problem(
          "name",
          fmt::format("the name {} does not resolve to an address", name),
          fmt::format("add a line \"ADDRESS {}\" to /etc/hosts, on every device", name));
      break;
    case ShellTrouble::Unreachable:
      findings_.problem(
          "ssh",
          fmt::format("{} cannot be reached ({})", name, said),
          "is it switched on, is its cable plugged in, and is that its address? `ping " + name +
              "` has to be answered");
      break;
    case ShellTrouble::Refused:
      findings_.problem("ssh",
                        fmt::format("{} answers, but has no ssh server", name),
                        "there: sudo systemctl enable --now ssh (package openssh-server)");
      break;
    case ShellTrouble::UnknownKey:
      findings_.problem(
          "ssh",
          fmt::format("the host key of {} is not known yet", name),
          fmt::format("once by hand: {}, and confirm its fingerprint", shell_and(name)));
      break;
    case ShellTrouble::ChangedKey:
      findings_.problem(
          "ssh",
          fmt::format("the host key of {} is another one than before", name),
          fmt::format("if it was installed anew: ssh-keygen -R {}; otherwise another machine "
                      "answers by its name",
                      name));
      break;
    case ShellTrouble::Denied:
      findings_.problem(
          "ssh",
          fmt::format("{} lets nobody in without a password ({})", name, said),
          fmt::format("ssh-copy-id {} (without a key of your own: ssh-keygen first)", name));
      break;
    case ShellTrouble::NotStarted:
      findings_.problem(
          "ssh",
          fmt::format("there is no program {} here", examination_.remote_shell),
          "sudo apt-get install openssh-client, or give --remote-shell what is there");
      break;
    case ShellTrouble::Silent:
      findings_.problem(
          "ssh",
          fmt::format("{} does not answer in time", shell_and(name)),
          fmt::format("`{} true` has to end at once and without a question", shell_and(name)));
      break;
    case ShellTrouble::Other:
      findings_.problem("ssh",
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
    findings_.warning("place",
                      fmt::format("this machine, {}, is not in the host file",
                                  examination_.origin.facts->host_name),
                      "start mpiexec and this command on the first device of the host file");
  } else if (!examination_.devices[0].is_here) {
    findings_.warning(
        "place",
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
    findings_.problem(
        "name",
        fmt::format("the own name of this machine, {}, does not resolve", name),
        fmt::format("add a line \"ADDRESS {}\" to /etc/hosts, with its address in the cluster",
                    name));
  } else if (is_loopback_address(addresses.front())) {
    findings_.problem(
        "name",
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
    findings_.problem(
        "name",
        fmt::format("the name {} does not resolve to an address", name),
        fmt::format("add a line \"ADDRESS {}\" to /etc/hosts, on every device", name));
  } else if (!device.is_here && is_loopback_address(addresses.front())) {
    findings_.problem(
        "name",
        fmt::format("{} resolves to {} here, which is this machine", name, addresses.front()),
        "correct its line in /etc/hosts of this machine");
  } else if (device.facts && !device.addresses.empty() &&
             std::none_of(addresses.begin(), addresses.end(), [&](const std::string& address) {
               return is_of(address, device) || is_loopback_address(address);
             })) {
    findings_.problem("name",
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
    findings_.problem(
        "name",
        fmt::format("{} does not resolve the name of this machine, {}", device.host.name, name),
        fmt::format("there: add a line \"{} {}\" to /etc/hosts", own.front(), name));
  } else if (std::none_of(there.begin(), there.end(), [&](const std::string& address) {
               return is_of(address, origin);
             })) {
    findings_.problem("name",
                      fmt::format("{} resolves the name of this machine, {}, to {}",
                                  device.host.name,
                                  name,
                                  there.front()),
                      fmt::format("there: put {} in place of it in /etc/hosts", own.front()));
  }
  const auto& itself = addresses_in(device, device.host.name);
  if (!itself.empty() && is_loopback_address(itself.front())) {
    findings_.warning(
        "name",
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
    findings_.problem("program", fmt::format("{} has no {}", name, examination_.program), copy);
  } else if (device.shell->program == "unusable") {
    findings_.problem(
        "program",
        fmt::format("{} on {} is no program that this user may start", examination_.program, name),
        copy);
  } else if (says("shared librar")) {
    findings_.problem("program",
                      fmt::format("the program lacks a library on {}: {}", name, device.shell_said),
                      "install there the packages that quickstart.sh names; `ldd " +
                          examination_.program + "` lists what is missing");
  } else if (says("xec format")) {
    findings_.problem("program",
                      fmt::format("the program on {} is made for other processors than its {}",
                                  name,
                                  device.shell->architecture),
                      "build it there: ./quickstart.sh");
  } else {
    findings_.problem("program",
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
      findings_.problem("folder",
                        fmt::format("{} has no folder {}", device.host.name, examination_.folder),
                        "there: mkdir -p " + examination_.folder);
    }
    return;
  }
  const DeviceFacts& own = *examination_.origin.facts;
  const DeviceFacts& facts = *device.facts;
  const std::string& name = device.host.name;
  if (facts.version != own.version) {
    findings_.problem("program",
                      fmt::format("{} has another version of the program: {}; here: {}",
                                  name,
                                  facts.version,
                                  own.version),
                      "tessera deploy --hostfile FILE copies this one, or build it there anew");
  }
  if (facts.word_bits != own.word_bits) {
    findings_.problem(
        "program",
        fmt::format("the program on {} is one of {} bits, here of {}: MPICH does not convert "
                    "between them",
                    name,
                    facts.word_bits,
                    own.word_bits),
        "install the same kind of system on all devices");
  } else if (facts.mpi != own.mpi) {
    findings_.problem("mpi",
                      fmt::format("{} has {}, here is {}", name, facts.mpi, own.mpi),
                      "install the same release of the distribution on all devices");
  }
  if (!facts.has_launcher) {
    findings_.problem("mpi",
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
      findings_.problem(
          "host-file",
          fmt::format("{} and {} are the same machine", other.host.name, device.host.name),
          "name it once in the host file, with as many ranks as it is to have: HOST:RANKS");
    } else {
      findings_.warning(
          "name",
          fmt::format("{} and {} both call themselves {}",
                      other.host.name,
                      device.host.name,
                      device.facts->host_name),
          fmt::format("on one of them: sudo hostnamectl set-hostname {}", device.host.name));
    }
    return;
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
      findings_.warning(
          "ssh",
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
      findings_.problem("clock",
                        fmt::format("the clock of {} is {} s {} that of this machine",
                                    device.host.name,
                                    three_digits(std::abs(*device.clock_offset_s)),
                                    *device.clock_offset_s > 0 ? "ahead of" : "behind"),
                        "on both: sudo timedatectl set-ntp true (package systemd-timesyncd)");
    }
    add_findings_of_facts(device, examination_.folder, i == 0, findings_);
  }
  add_findings_of_links(examination_, findings_);
  std::stable_sort(findings_.all.begin(),
                   findings_.all.end(),
                   [](const Finding& a, const Finding& b) { return a.device < b.device; });
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
