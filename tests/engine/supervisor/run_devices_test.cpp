#include "engine/supervisor/run_devices.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/supervisor/device_presence.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// Agents that are scripts: each says what its device's file has, and is there until it is told to
// end or its file is gone. The first device is this machine.
class FakeDevices {
 public:
  explicit FakeDevices(int count) {
    script("agent",
           "device=${DEVICE:-localhost}\n"
           "cat \"$folder/$device\" 2>/dev/null || exit 255\n"
           "while read -r line; do case $line in *'\"do\":\"end\"'*) exit;; esac; done\n");
    script("shell", "DEVICE=$1\nexport DEVICE\nshift\neval \"$*\"\n");
    request.agents = {(folder_ / "agent").string(), (folder_ / "shell").string()};
    request.version = "7";
    request.say = [this](const std::string& line) { said.push_back(line); };
    record.run_number = "0123456789abcdef";
    for (int device = 0; device < count; ++device) {
      record.hosts.push_back({device == 0 ? "localhost" : fmt::format("pi{}", device + 1), 1});
      answers(device, R"({"is":"hello","version":"7","folder_there":true})");
    }
  }

  void answers(int device, const std::string& line) const {
    tests::put_bytes(folder_ / record.hosts[static_cast<std::size_t>(device)].name, line + "\n");
  }
  void is_off(int device) const {
    std::filesystem::remove(folder_ / record.hosts[static_cast<std::size_t>(device)].name);
  }
  [[nodiscard]] RunDevices all() const { return {request, record, kSilence_s}; }

  static constexpr double kSilence_s = 60;
  SupervisorRequest request;
  SupervisorRecord record;
  std::vector<std::string> said;

 private:
  void script(const std::string& name, const std::string& text) const {
    tests::put_bytes(folder_ / name,
                     "#!/bin/sh\nfolder='" + folder_.path().string() + "'\n" + text);
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }

  tests::TemporaryFolder folder_;
};

// Takes messages until something holds, a minute at most.
template <class Holds>
bool soon(RunDevices& devices, Holds holds) {
  const double end_s = now_s() + 60;
  while (!holds() && now_s() < end_s) {
    devices.wait();
    for (int device = 0; device < devices.size(); ++device) {
      for (const auto& message : devices.link(device).receive()) {
        (void)devices.take(device, message);
      }
    }
  }
  return holds();
}

}  // namespace

TEST_CASE("this machine is the first device, wherever the host file has it") {
  FakeDevices fake(3);
  std::swap(fake.record.hosts[0], fake.record.hosts[2]);
  RunDevices devices = fake.all();
  CHECK(devices.name_of(0) == "localhost");
  CHECK(devices.place_of(0) == 2);
  CHECK(devices.place_of(1) == 0);
  CHECK(devices.link(0).is_here());
  fake.record.hosts = {{"no-such-host.invalid", 1}};
  CHECK_THROWS_AS((void)fake.all(), InputError);
}

TEST_CASE("a new run needs all its devices, one that goes on leaves out those that are off") {
  FakeDevices fake(4);
  {
    RunDevices devices = fake.all();
    devices.reach_all();
    CHECK(devices.roster().taking_part() == std::vector<int>{0, 1, 2, 3});
    devices.end(true);
  }
  fake.is_off(2);
  {
    RunDevices devices = fake.all();
    CHECK_THROWS_AS(devices.reach_all(), InputError);
  }
  fake.request.goes_on = true;
  RunDevices devices = fake.all();
  devices.reach_all();
  CHECK(devices.roster().taking_part() == std::vector<int>{0, 1, 3});
  CHECK(fake.said ==
        std::vector<std::string>{"pi3 cannot be reached and is left out until it can"});
}

TEST_CASE("more than half of the devices of the last step go on, half where a witness answers") {
  struct Case {
    std::vector<int> last_step;
    int off;
    std::string witness;
    bool enough;
  };
  for (const Case& tried : {Case{{0, 1, 2, 3}, 1, "no-such-host.invalid", true},
                            {{0, 1, 2, 3}, 2, "no-such-host.invalid", false},
                            {{0, 1, 2, 3}, 2, "127.0.0.1", true},
                            {{0, 1, 2, 3}, 3, "127.0.0.1", false},
                            {{0, 2}, 1, "no-such-host.invalid", true},
                            {{0}, 3, "no-such-host.invalid", true}}) {
    FakeDevices fake(4);
    fake.request.goes_on = true;
    fake.record.last_step = tried.last_step;
    fake.record.witness = tried.witness;
    for (int device = 1; device <= tried.off; ++device) {
      fake.is_off(device);
    }
    RunDevices devices = fake.all();
    devices.reach_all();
    DevicePresence presence(fake.request, fake.record, devices);
    CHECK(presence.is_enough() == tried.enough);
    CHECK(presence.is_complete() == (tried.last_step.size() < 3));
  }
}

TEST_CASE("a witness that has just answered is not asked again") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "ping", "#!/bin/sh\necho >>\"$0.asked\"\n");
  std::filesystem::permissions(folder / "ping", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", ((folder / "").string() + ":" + path).c_str(), 1);
  FakeDevices fake(2);
  fake.request.goes_on = true;
  fake.record.last_step = {0, 1};
  fake.record.witness = "192.0.2.1";
  fake.is_off(1);
  RunDevices devices = fake.all();
  devices.reach_all();
  DevicePresence presence(fake.request, fake.record, devices);
  CHECK(presence.is_enough());
  CHECK(presence.is_enough());
  ::setenv("PATH", path.c_str(), 1);
  CHECK(tests::bytes_of(folder / "ping.asked") == "\n");
}

TEST_CASE("who waits says for whom, why, and how to go on all the same") {
  FakeDevices fake(2);
  fake.request.goes_on = true;
  fake.record.last_step = {0, 1};
  fake.record.run_folder = "/home/pi/my run";
  fake.record.interface = "no-such0";
  fake.is_off(1);
  RunDevices devices = fake.all();
  devices.reach_all();
  DevicePresence presence(fake.request, fake.record, devices);
  CHECK(!presence.is_enough());
  CHECK(presence.what_is_missing() ==
        "waiting for pi2: 1 of the 2 devices of the last step is here, too few to go on, since the "
        "cable of no-such0 is out here; to go on without the others, stop this and enter: tessera "
        "run --continue '/home/pi/my run' --alone");
}

TEST_CASE("a run that has finished on another device is not begun again, one here ends well") {
  for (const int device : {0, 1}) {
    FakeDevices fake(2);
    fake.request.goes_on = true;
    fake.answers(device, R"({"is":"finished"})");
    RunDevices devices = fake.all();
    devices.reach_all();
    CHECK(devices.has_finished());
    CHECK(devices.are_led_by_another() == (device == 1));
  }
}

TEST_CASE("a device with another program, or without the folder, does not begin a run") {
  for (const char* answer : {R"({"is":"hello","version":"8","folder_there":true})",
                             R"({"is":"hello","version":"7","folder_there":false})"}) {
    FakeDevices fake(2);
    fake.answers(1, answer);
    RunDevices devices = fake.all();
    CHECK_THROWS_AS(devices.reach_all(), InputError);
  }
}

TEST_CASE("why an agent does not begin ends a new run, and leaves the device out of another") {
  FakeDevices fake(3);
  fake.answers(1, R"({"is":"problem","text":"no room"})");
  {
    RunDevices devices = fake.all();
    CHECK_THROWS_WITH_AS(devices.reach_all(), "pi2: no room", InputError);
  }
  fake.request.goes_on = true;
  RunDevices devices = fake.all();
  devices.reach_all();
  CHECK(devices.roster().taking_part() == std::vector<int>{0, 2});
  CHECK(fake.said.front() == "pi2: no room");
}

TEST_CASE("what is wrong with a device that returns does not end a run") {
  FakeDevices fake(2);
  RunDevices devices = fake.all();
  devices.reach_all();
  devices.ranks_start();
  devices.link(1).drop();
  devices.leave_out(1);
  fake.answers(1, R"({"is":"hello","version":"8","folder_there":true})");
  devices.start_agent(1);
  CHECK(soon(devices, [&] { return !fake.said.empty(); }));
  CHECK(fake.said ==
        std::vector<std::string>{"pi2 runs another program (8) than this machine (7)"});
  CHECK(devices.link(1).state() == AgentLink::State::Absent);
}

TEST_CASE("a device that is superseded, or refuses a supervisor that takes over, ends that") {
  for (const char* answer : {R"({"is":"superseded"})", R"({"is":"heard"})"}) {
    FakeDevices fake(2);
    fake.request.goes_on = true;
    fake.request.takes_over = true;
    fake.answers(1, answer);
    RunDevices devices = fake.all();
    devices.reach_all();
    CHECK(devices.are_led_by_another());
  }
}

TEST_CASE("once ranks have started, a refusal elsewhere than here is no reason to end") {
  FakeDevices fake(2);
  RunDevices devices = fake.all();
  devices.reach_all();
  devices.ranks_start();
  const to_supervisor::Message refusal = to_supervisor::Heard{};
  CHECK(devices.take(1, refusal));
  CHECK_FALSE(devices.are_led_by_another());
  CHECK(devices.link(1).state() == AgentLink::State::Absent);
  CHECK(devices.take(0, refusal));
  CHECK(devices.are_led_by_another());
}

TEST_CASE("an agent that has gone is noticed, and looked for again where its device is out") {
  FakeDevices fake(2);
  RunDevices devices = fake.all();
  devices.reach_all();
  devices.ranks_start();
  CHECK(!devices.loss_of(1));
  devices.link(1).send(to_agent::End{});
  CHECK(soon(devices, [&] { return devices.loss_of(1).has_value(); }));
  CHECK(devices.loss_of(1) == "pi2 has closed the connection");
  devices.link(1).drop();
  CHECK(!devices.loss_of(1));
  devices.leave_out(1);
  CHECK(soon(devices, [&] {
    devices.look_for_missing(false);
    return devices.link(1).is_ready();
  }));
}

TEST_CASE("a device that is left out though its agent answers is taken back like any other") {
  FakeDevices fake(2);
  RunDevices devices = fake.all();
  devices.reach_all();
  devices.leave_out(1);
  CHECK(devices.roster().taking_part() == std::vector<int>{0});
  const Roster::Prospect long_run{.step_s = 1, .steps_left = 1000, .change_s = 5};
  CHECK(devices.roster().worth_taking_back(long_run, now_s()).empty());
  CHECK(devices.roster().worth_taking_back(long_run, now_s() + 60) == std::vector<int>{1});
}

}  // namespace tessera::engine
