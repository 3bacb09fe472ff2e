#include "engine/cluster/findings.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

constexpr Index kGibibyte = Index{1} << 30U;

DeviceFacts healthy_facts(const std::string& name) {
  return {.host_name = name,
          .boot = name,
          .version = "tessera 1 (sources a)",
          .mpi = "MPICH 4.0.2 (ch4:ucx)",
          .architecture = "aarch64",
          .word_bits = 64,
          .has_launcher = true,
          .memory_bytes = kGibibyte,
          .free_memory_bytes = kGibibyte / 2,
          .processors = 4,
          .load = 0.1,
          .folder_exists = true,
          .folder_writable = true,
          .folder_free_bytes = 8 * kGibibyte,
          .storage = Storage::Card,
          .shared_memory_free_bytes = kGibibyte / 2,
          .governor = "ondemand"};
}

// pi1, which is this machine, and pi2.
Examination healthy_cluster() {
  Examination examination{.program = "/opt/tessera", .folder = "/work", .remote_shell = "ssh"};
  for (int i = 1; i <= 2; ++i) {
    const std::string name = "pi" + std::to_string(i);
    ExaminedDevice device;
    device.host.name = name;
    device.is_here = i == 1;
    device.shell = ShellFacts{"aarch64", "64", "arm64", "there", true, true};
    device.facts = healthy_facts(name);
    device.names = {{"pi1", {"10.0.0.1"}}, {"pi2", {"10.0.0.2"}}};
    device.address = "10.0.0." + std::to_string(i);
    device.addresses = {{device.address, "eth0", 100e6, false}};
    if (i == 2) {
      device.clock_offset_s = 0.3;
    }
    examination.devices.push_back(device);
  }
  examination.origin = examination.devices[0];
  examination.links = {{.a = 0,
                        .b = 1,
                        .round_trip_s = 3e-4,
                        .forward_bytes_per_s = 11.7e6,
                        .back_bytes_per_s = 11.6e6}};
  return examination;
}

// The only finding of a cluster with one thing wrong.
Finding only_finding(const Examination& examination) {
  const std::vector<Finding> findings = findings_of(examination);
  REQUIRE(findings.size() == 1);
  CHECK_FALSE(findings[0].remedy.empty());
  return findings[0];
}

// That pi2, changed so, has this and only this finding.
template <typename Change>
Finding finding_after(Change change) {
  Examination examination = healthy_cluster();
  change(examination.devices[1]);
  const Finding found = only_finding(examination);
  CHECK(found.device == 1);
  return found;
}

bool mentions(const Finding& finding, const std::string& text) {
  return (finding.what + "\n" + finding.remedy).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("nothing is wrong with a healthy cluster") {
  CHECK(findings_of(healthy_cluster()).empty());
}

TEST_CASE("each trouble of a remote shell has a remedy of its own") {
  struct Case {
    ShellTrouble trouble;
    const char* remedy;
  };
  for (const Case& one : {Case{ShellTrouble::Unreachable, "ping pi2"},
                          Case{ShellTrouble::Refused, "enable --now ssh"},
                          Case{ShellTrouble::UnknownKey, "once by hand"},
                          Case{ShellTrouble::ChangedKey, "ssh-keygen -R pi2"},
                          Case{ShellTrouble::Denied, "ssh-copy-id pi2"},
                          Case{ShellTrouble::NotStarted, "openssh-client"},
                          Case{ShellTrouble::UnknownName, "/etc/hosts"},
                          Case{ShellTrouble::Silent, "ssh pi2 true"},
                          Case{ShellTrouble::Other, "ssh pi2 true"}}) {
    const Finding found = finding_after([&](ExaminedDevice& device) {
      device = ExaminedDevice{.host = {"pi2", 1}, .trouble = one.trouble};
    });
    CHECK(found.is_problem);
    CHECK_MESSAGE(mentions(found, one.remedy), found.remedy);
  }
}

TEST_CASE("what ssh says is told apart") {
  const auto trouble = [](const std::string& line) { return shell_trouble({line}, 255); };
  CHECK(trouble("ssh: connect to host pi2 port 22: Connection refused") == ShellTrouble::Refused);
  CHECK(trouble("ssh: connect to host pi2 port 22: No route to host") == ShellTrouble::Unreachable);
  CHECK(trouble("ssh: connect to host pi2 port 22: Connection timed out") ==
        ShellTrouble::Unreachable);
  CHECK(trouble("ssh: Could not resolve hostname pi2: Name or service not known") ==
        ShellTrouble::UnknownName);
  CHECK(trouble("pi@pi2: Permission denied (publickey,password).") == ShellTrouble::Denied);
  CHECK(trouble("Host key verification failed.") == ShellTrouble::UnknownKey);
  CHECK(shell_trouble({"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @",
                       "Host key verification failed."},
                      255) == ShellTrouble::ChangedKey);
  CHECK(trouble("kex_exchange_identification: read: Connection reset by peer") ==
        ShellTrouble::Other);
  CHECK(shell_trouble({}, 127) == ShellTrouble::NotStarted);
}

TEST_CASE("a program that is missing, another one or of another kind is a problem") {
  const auto without_answer = [](const char* program, const char* said) {
    return finding_after([&](ExaminedDevice& device) {
      device.facts.reset();
      device.shell->program = program;
      device.shell_said = said;
    });
  };
  CHECK(mentions(without_answer("missing", ""), "pi2 has no /opt/tessera"));
  CHECK(mentions(without_answer("unusable", ""), "no program that this user may start"));
  CHECK(mentions(without_answer("there", "an agent is started by"), "another version"));
  CHECK(mentions(
      without_answer("there", "error while loading shared libraries: libmpich.so.12: cannot"),
      "libmpich.so.12"));
  CHECK(mentions(without_answer("there", "sh: 1: exec: /opt/tessera: Exec format error"),
                 "other processors"));
  CHECK(mentions(finding_after([](ExaminedDevice& device) {
                   device.facts->version = "tessera 1 (sources b)";
                 }),
                 "another version"));
  CHECK(mentions(finding_after([](ExaminedDevice& device) {
                   device.facts->word_bits = 32;
                   device.facts->mpi = "MPICH 4.0.2 (ch3:nemesis)";
                 }),
                 "32 bits"));
  CHECK(mentions(
      finding_after([](ExaminedDevice& device) { device.facts->mpi = "MPICH 3.4.1 (ch4:ucx)"; }),
      "MPICH 3.4.1"));
  CHECK(mentions(finding_after([](ExaminedDevice& device) { device.facts->has_launcher = false; }),
                 "apt-get install mpich"));
}

TEST_CASE("another architecture of the same word size is no problem") {
  Examination examination = healthy_cluster();
  examination.devices[1].facts->architecture = "x86_64";
  CHECK(findings_of(examination).empty());
}

TEST_CASE("the name of this machine must mean its address on all devices") {
  Examination examination = healthy_cluster();
  examination.origin.names["pi1"] = {"127.0.1.1"};
  examination.devices[0] = examination.origin;
  Finding found = only_finding(examination);
  CHECK(found.device == -1);
  CHECK(found.is_problem);
  CHECK(mentions(found, "127.0.1.1"));

  found = finding_after([](ExaminedDevice& device) { device.names["pi1"] = {"127.0.1.1"}; });
  CHECK(found.is_problem);
  CHECK(mentions(found, "10.0.0.1"));
  found = finding_after([](ExaminedDevice& device) { device.names["pi1"].clear(); });
  CHECK(mentions(found, "does not resolve the name of this machine"));
  found = finding_after([](ExaminedDevice& device) { device.names["pi2"] = {"127.0.1.1"}; });
  CHECK_FALSE(found.is_problem);
  CHECK(mentions(found, "its own name resolves to 127.0.1.1"));
}

TEST_CASE("one device needs no name that others can reach") {
  Examination examination = healthy_cluster();
  examination.devices.pop_back();
  examination.links.clear();
  examination.origin.names["pi1"] = {"127.0.1.1"};
  examination.devices[0] = examination.origin;
  CHECK(findings_of(examination).empty());
}

TEST_CASE("a name that means another machine here is a problem") {
  Examination examination = healthy_cluster();
  examination.origin.names["pi2"] = {"10.0.0.9"};
  examination.devices[0] = examination.origin;
  const Finding found = only_finding(examination);
  CHECK(found.is_problem);
  CHECK(mentions(found, "resolves to 10.0.0.9 here, but the machine that answers has 10.0.0.2"));
}

TEST_CASE("clocks may differ by a second and by what the measurement leaves open") {
  Examination examination = healthy_cluster();
  examination.devices[1].clock_offset_s = -1.4;
  examination.devices[1].clock_error_s = 0.5;
  CHECK(findings_of(examination).empty());
  examination.devices[1].clock_error_s = 0.01;
  const Finding found = only_finding(examination);
  CHECK(found.subject == "clock");
  CHECK(mentions(found, "1.40 s behind"));
}

TEST_CASE("what slows a board down is told") {
  const auto after = [](auto change) {
    return finding_after([&](ExaminedDevice& device) { change(*device.facts); });
  };
  CHECK(after([](DeviceFacts& facts) { facts.governor = "powersave"; }).subject == "governor");
  CHECK(after([](DeviceFacts& facts) { facts.load = 3; }).subject == "load");
  CHECK(after([](DeviceFacts& facts) { facts.temperature_c = 76; }).is_problem == false);
  CHECK(after([](DeviceFacts& facts) { facts.temperature_c = 83; }).is_problem);
  Finding found = after([](DeviceFacts& facts) { facts.throttled = 0x1; });
  CHECK(found.is_problem);
  CHECK(mentions(found, "too little voltage"));
  found = after([](DeviceFacts& facts) { facts.throttled = 0x10000; });
  CHECK_FALSE(found.is_problem);
  CHECK(mentions(found, "has had too little voltage"));
  CHECK(after([](DeviceFacts& facts) { facts.throttled = 0x4; }).subject == "throttling");
  // A clock that was limited at some time is no finding.
  Examination examination = healthy_cluster();
  examination.devices[1].facts->throttled = 0x20000;
  CHECK(findings_of(examination).empty());
}

TEST_CASE("memory, swap and disks that do not suffice are told") {
  const auto after = [](auto change) {
    return finding_after([&](ExaminedDevice& device) { change(*device.facts); });
  };
  CHECK(after([](DeviceFacts& facts) { facts.free_memory_bytes = 1 << 20; }).subject == "memory");
  const Finding swap = after([](DeviceFacts& facts) {
    facts.swap_bytes = 100 << 20;
    facts.swaps_to_card = true;
  });
  CHECK(mentions(swap, "dphys-swapfile"));
  CHECK(after([](DeviceFacts& facts) { facts.folder_free_bytes = 1 << 20; }).subject == "disk");
  CHECK(after([](DeviceFacts& facts) { facts.shared_memory_free_bytes = 0; }).subject == "memory");
  const Finding folder = after([](DeviceFacts& facts) { facts.folder_exists = false; });
  CHECK(folder.is_problem);
  CHECK(mentions(folder, "mkdir -p /work"));
  // Swap in compressed memory is none.
  Examination examination = healthy_cluster();
  examination.devices[1].facts->swap_bytes = kGibibyte;
  CHECK(findings_of(examination).empty());
}

TEST_CASE("links are judged by what they carry and by what they have negotiated") {
  Examination examination = healthy_cluster();
  examination.links[0].back_bytes_per_s = 4e6;
  CHECK(mentions(only_finding(examination), "only 32.0 Mbit/s of 100 Mbit/s"));
  examination = healthy_cluster();
  examination.links[0].problem = "no answer";
  Finding found = only_finding(examination);
  CHECK(found.is_problem);
  CHECK(mentions(found, "firewall"));
  examination = healthy_cluster();
  examination.links[0].round_trip_s = 9e-3;
  CHECK(mentions(only_finding(examination), "9.00 ms"));
  found = finding_after([](ExaminedDevice& device) { device.addresses[0].wireless = true; });
  CHECK(mentions(found, "Wi-Fi"));
  examination = healthy_cluster();
  examination.devices[1].addresses[0].bits_per_s = 10e6;
  examination.links[0].forward_bytes_per_s = examination.links[0].back_bytes_per_s = 1.2e6;
  CHECK(mentions(only_finding(examination), "has negotiated only 10.0 Mbit/s"));
}

TEST_CASE("a link that is much slower than another one is told, where no interface says why") {
  Examination examination = healthy_cluster();
  for (ExaminedDevice& device : examination.devices) {
    device.addresses[0].bits_per_s = 1e9;
  }
  examination.links.push_back(examination.links[0]);
  CHECK(findings_of(examination).empty());
  examination.links[0].forward_bytes_per_s = examination.links[0].back_bytes_per_s = 110e6;
  CHECK(mentions(only_finding(examination),
                 "only 92.8 Mbit/s, 9 times less than between pi1 and pi2"));
  examination.devices[1].addresses[0].bits_per_s = 100e6;
  CHECK(findings_of(examination).empty());
}

TEST_CASE("a machine that is listed twice is a problem, a name that two have is not") {
  Examination examination = healthy_cluster();
  ExaminedDevice& second = examination.devices[1];
  second.facts->host_name = "pi1";
  Finding found = only_finding(examination);
  CHECK_FALSE(found.is_problem);
  CHECK(mentions(found, "set-hostname pi2"));
  second.facts->boot = examination.devices[0].facts->boot;
  found = only_finding(examination);
  CHECK(found.is_problem);
  CHECK(mentions(found, "the same machine"));
}

TEST_CASE("this machine should be the first of the host file") {
  Examination examination = healthy_cluster();
  std::swap(examination.devices[0], examination.devices[1]);
  CHECK(mentions(only_finding(examination), "not the first of the host file"));
  examination.devices.pop_back();
  examination.links.clear();
  CHECK(mentions(only_finding(examination), "is not in the host file"));
}

TEST_CASE("the line of a device's shell is taken apart, others are not") {
  const auto facts = shell_facts_in("tessera-device aarch64 32 armhf there 1 0");
  REQUIRE(facts);
  CHECK(facts->architecture == "aarch64");
  CHECK(facts->word_bits == "32");
  CHECK(facts->packages == "armhf");
  CHECK(facts->program == "there");
  CHECK(facts->has_rsync);
  CHECK_FALSE(facts->has_folder);
  CHECK_FALSE(shell_facts_in("Welcome to pi2, have fun with it 1 0"));
  CHECK_FALSE(shell_facts_in("tessera-device aarch64"));
}

TEST_CASE("paths with quotes and blanks stay words of the shell") {
  const std::string command = examining_command("/opt/it's here/tessera", "/a b");
  CHECK(command.rfind("exec /bin/sh -c '", 0) == 0);
  // As the outer shell takes them, quotes of the inner one included.
  CHECK(command.find("'\\''/a b'\\''") != std::string::npos);
}

}  // namespace tessera::engine
