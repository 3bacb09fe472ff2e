#include "engine/run_view/run_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/run_view/run_figures.h"
#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::known;
using engine::RunReader;
using engine::RunState;
using tests::TemporaryFolder;

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}
void append(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

std::string step_line(int step) {
  return fmt::format(
      R"({{"step":{},"loss":{},"learning_rate":0.01,"step_s":0.5,"images_per_s":20,"load_s":0,)"
      R"("forward_s":0.2,"backward_s":0.2,"update_s":0.1,"exchange_s":0.05}})"
      "\n",
      step,
      2.0 / step);
}

std::string run_json(const char* state) {
  return fmt::format(
      R"({{"version":"0.1.0","model":"m.cfg","data":"d","command":"tessera train","started":)"
      R"("2026-01-02T03:04:05Z","first_step":1,"last_step":20,"epoch_steps":10,"batch":8,"seed":3,)"
      R"("class_names":["a","b"],"ranks":[{{"rank":0,"host":"pi1","threads":4}}],)"
      R"("predicted_step_s":null,"state":"{}","reason":"because"}})",
      state);
}

// Holds the lock of a run's folder, as the run does.
class Lock {
 public:
  explicit Lock(const TemporaryFolder& folder)
      : descriptor_(::open((folder / "run.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    REQUIRE(::flock(descriptor_, LOCK_EX | LOCK_NB) == 0);
  }
  ~Lock() { ::close(descriptor_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

TEST_CASE("pictures of a run are read where they are asked for, and again when they are replaced") {
  const TemporaryFolder folder;
  write(folder / "test-pictures.png", "one");
  RunReader without(folder.path());
  CHECK(!without.read());
  CHECK(without.data().test_sheet.empty());
  RunReader reader(folder.path(), engine::Sheets::Read);
  CHECK(reader.read());
  CHECK(reader.data().test_sheet == "one");
  CHECK(!reader.read());
  write(folder / "test-pictures.png", "another");
  CHECK(reader.read());
  CHECK(reader.data().test_sheet == "another");
  CHECK(reader.data().training_sheet.empty());
  CHECK(reader.data().damaged.empty());
}

TEST_CASE("the folder of no run is an empty run") {
  const TemporaryFolder folder;
  const engine::RunData data = engine::read_run(folder.path());
  CHECK(data.state == RunState::Empty);
  CHECK(data.ranks() == 0);
  CHECK(data.damaged.empty());
  CHECK(!data.info);
}

TEST_CASE("what is no folder is refused with what to give instead") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(RunReader(folder / "none"),
                       doctest::Contains("does not exist: give the folder of a run"),
                       InputError);
  write(folder / "file", "");
  CHECK_THROWS_WITH_AS(
      RunReader(folder / "file"), doctest::Contains("is not a folder"), InputError);
}

TEST_CASE("steps and evaluations are told apart, and what is not said is unknown") {
  const TemporaryFolder folder;
  write(folder / "metrics.jsonl",
        step_line(1) + step_line(2) +
            R"({"step":2,"epoch":1,"accuracy":0.75,"test_loss":0.5,"test_pictures":40})" + "\n");
  const engine::RunData data = engine::read_run(folder.path());
  REQUIRE(data.steps.size() == 2);
  CHECK(data.steps[1].step == 2);
  CHECK(data.steps[1].loss == 1.0);
  CHECK(data.steps[1].exchange_s == 0.05);
  CHECK(!known(data.steps[1].energy_j));
  REQUIRE(data.evaluations.size() == 1);
  CHECK(data.evaluations[0].accuracy == 0.75);
  CHECK(!data.finds_objects);
  CHECK(data.evaluations[0].test_pictures == 40);
}

TEST_CASE("of a detector the figure of a test is its mean average precision") {
  const TemporaryFolder folder;
  write(folder / "metrics.jsonl",
        step_line(1) + R"({"step":1,"epoch":1,"map50":0.25,"test_loss":0.5})" + "\n");
  const engine::RunData data = engine::read_run(folder.path());
  CHECK(data.finds_objects);
  REQUIRE(data.evaluations.size() == 1);
  CHECK(data.evaluations[0].accuracy == 0.25);
}

TEST_CASE("damaged lines are skipped and counted, unknown keys and kinds of lines are not") {
  const TemporaryFolder folder;
  write(folder / "metrics.jsonl",
        step_line(1) + "{\"step\":2,\"lo\n[1,2]\n\n\"text\"\n" + std::string("\0\xff\n", 3) +
            R"({"step":3,"loss":null,"later":{"a":[1,{"b":2}]},"tags":["x"]})" + "\n" +
            R"({"step":4,"something":"else"})" + "\n" + R"({"loss":1})" + "\n" +
            R"({"step":5,"loss":0.25,"st)");
  const engine::RunData data = engine::read_run(folder.path());
  REQUIRE(data.steps.size() == 2);
  CHECK(data.steps[1].step == 3);
  CHECK(!known(data.steps[1].loss));
  CHECK(data.damaged.at("metrics.jsonl") == 7);  // the last one is cut off
}

TEST_CASE("a file that grows is read on from where it ended, and half a line waits for its end") {
  const TemporaryFolder folder;
  const Lock lock(folder);
  RunReader reader(folder.path());
  CHECK(reader.read());
  CHECK(reader.data().state == RunState::Running);
  CHECK(!reader.read());
  const std::string third = step_line(3);
  write(folder / "metrics.jsonl", step_line(1) + step_line(2) + third.substr(0, 30));
  CHECK(reader.read());
  CHECK(reader.data().steps.size() == 2);
  CHECK(reader.data().damaged.empty());
  append(folder / "metrics.jsonl", third.substr(30));
  CHECK(reader.read());
  REQUIRE(reader.data().steps.size() == 3);
  CHECK(reader.data().steps[2].step == 3);
  CHECK(!reader.read());
}

TEST_CASE("a file that was replaced or cut is read again") {
  const TemporaryFolder folder;
  write(folder / "metrics.jsonl", step_line(1) + step_line(2));
  RunReader reader(folder.path());
  reader.read();
  write(folder / "new", step_line(7));
  std::filesystem::rename(folder / "new", folder / "metrics.jsonl");
  CHECK(reader.read());
  REQUIRE(reader.data().steps.size() == 1);
  CHECK(reader.data().steps[0].step == 7);
  std::filesystem::resize_file(folder / "metrics.jsonl", 0);
  CHECK(reader.read());
  CHECK(reader.data().steps.empty());
  std::filesystem::remove(folder / "metrics.jsonl");
  CHECK(!reader.read());
}

TEST_CASE("the state is that of run.json, but a run that nobody runs was interrupted") {
  const TemporaryFolder folder;
  RunReader reader(folder.path());
  write(folder / "run.json", run_json("running"));
  {
    const Lock lock(folder);
    reader.read();
    CHECK(reader.data().state == RunState::Running);
    REQUIRE(reader.data().info);
    CHECK(reader.data().info->class_names == std::vector<std::string>{"a", "b"});
    CHECK(reader.data().info->last_step == 20);
    CHECK(reader.data().info->ranks.at(0).host == "pi1");
    CHECK(!known(reader.data().info->predicted_step_s));
  }
  CHECK(reader.read());
  CHECK(reader.data().state == RunState::Interrupted);
  CHECK(reader.data().reason.find("killed") != std::string::npos);
  for (const auto& [name, state] : {std::pair{"finished", RunState::Finished},
                                    {"failed", RunState::Failed},
                                    {"interrupted", RunState::Interrupted}}) {
    write(folder / "run.json", run_json(name));
    CHECK(reader.read());
    CHECK(reader.data().state == state);
    CHECK(reader.data().reason == "because");
  }
}

TEST_CASE("a run of an earlier version has finished where memory.json is there") {
  const TemporaryFolder folder;
  write(folder / "metrics.jsonl", step_line(1));
  RunReader reader(folder.path());
  reader.read();
  CHECK(reader.data().state == RunState::Interrupted);
  write(folder / "memory.json",
        R"({"unit":"bytes","ranks":[{"rank":0,"planned":{"weights":4,"total":4},)"
        R"("measured":{"weights":5,"peak_resident":9}}]})");
  reader.read();
  CHECK(reader.data().state == RunState::Finished);
  REQUIRE(reader.data().memory.size() == 1);
  CHECK(reader.data().memory[0].planned.weights == 4);
  CHECK(reader.data().memory[0].measured.weights == 5);
  CHECK(reader.data().memory[0].peak_resident_bytes == 9);
  CHECK(reader.data().ranks() == 1);
}

TEST_CASE("samples of devices are kept by rank, nulls unknown, times and ranks required") {
  const TemporaryFolder folder;
  write(folder / "devices.jsonl",
        R"({"t_s":1,"rank":1,"host":"pi2","step":3,"cpu_user_s":0.5,"rss_bytes":4096,)"
        R"("temperature_c":null,"throttled":true,"power_w":3.5,"power_source":"rapl"})"
        "\n"
        R"({"t_s":1.1,"rank":0,"host":"pi1","step":3,"power_w":null,"power_source":null})"
        "\n"
        R"({"rank":0})"
        "\n"
        R"({"t_s":2,"rank":-1})"
        "\n");
  const engine::RunData data = engine::read_run(folder.path());
  REQUIRE(data.devices.size() == 2);
  const engine::RunDevice& second = data.devices.at(1);
  CHECK(second.host == "pi2");
  CHECK(second.power_source == "rapl");
  CHECK(second.samples.at(0).rss_bytes == 4096);
  CHECK(second.samples.at(0).throttled == 1);
  CHECK(!known(second.samples.at(0).temperature_c));
  CHECK(data.devices.at(0).power_source.empty());
  CHECK(data.damaged.at("devices.jsonl") == 2);
  CHECK(data.ranks() == 2);
}

TEST_CASE("faults are counted with what going on after them took") {
  const TemporaryFolder folder;
  CHECK(faults_text(engine::read_run(folder.path()).faults).empty());
  const std::string lines =
      R"({"t_s":1,"step":3,"rank":null,"kind":"fault","text":"rank 1 was killed"})"
      "\n"
      R"({"t_s":1,"step":3,"rank":null,"kind":"fault","text":"rank 2 was killed"})"
      "\n"
      R"({"t_s":2,"step":4,"rank":null,"kind":"recovery","text":"r","lost_s":4.25,"repeated_steps":1})"
      "\n"
      R"({"t_s":5,"step":7,"rank":null,"kind":"fault","text":"rank 0 was killed"})"
      "\n"
      R"({"t_s":6,"step":8,"rank":null,"kind":"recovery","text":"r","lost_s":3.8,"repeated_steps":2})"
      "\n"
      R"({"t_s":6,"step":8,"rank":null,"kind":"recovery","text":"r","lost_s":-1,"repeated_steps":"x"})"
      "\n"
      R"({"t_s":7,"step":8,"rank":null,"kind":"warning","text":"w","lost_s":9,"repeated_steps":9})"
      "\n";
  write(folder / "events.jsonl", lines);
  const engine::RunData data = engine::read_run(folder.path());
  CHECK(data.events.size() == 7);
  CHECK(faults_text(data.faults) == "faults: 3, time lost 8.1 s, steps repeated 3");
}

TEST_CASE("events and timings are read, predictions apart") {
  const TemporaryFolder folder;
  write(folder / "events.jsonl",
        R"({"t_s":0.5,"step":0,"rank":null,"kind":"start","text":"4 ranks"})"
        "\n"
        R"({"t_s":9,"step":7,"rank":2,"kind":"warning","text":"hot"})"
        "\n{}\n");
  write(folder / "timing.jsonl",
        R"({"t_s":0,"step":0,"steps":1,"rank":0,"predicted":true,"step_s":0.5})"
        "\n"
        R"({"t_s":9,"step":7,"steps":5,"rank":0,"step_s":0.6,"loading_s":0.1,"forward_s":0.1,)"
        R"("backward_s":0.2,"update_s":0.05,"exchanging_s":0.05,"waiting_s":0.1})"
        "\n");
  const engine::RunData data = engine::read_run(folder.path());
  REQUIRE(data.events.size() == 2);
  CHECK(data.events[0].rank == -1);
  CHECK(data.events[1].rank == 2);
  CHECK(data.events[1].text == "hot");
  CHECK(data.damaged.at("events.jsonl") == 1);
  REQUIRE(data.predicted.size() == 1);
  CHECK(data.predicted[0].step_s == 0.5);
  REQUIRE(data.timings.size() == 1);
  CHECK(data.timings[0].steps == 5);
  CHECK(data.timings[0].computing_s() == doctest::Approx(0.35));
}

TEST_CASE("damaged whole files are counted and left out") {
  const TemporaryFolder folder;
  for (const char* name : {"run.json", "memory.json", "plan.json", "timeline.json"}) {
    write(folder / name, "{\"ranks\":");
  }
  RunReader reader(folder.path());
  reader.read();
  CHECK(reader.data().damaged.size() == 4);
  CHECK(reader.data().state == RunState::Empty);
  write(folder / "timeline.json", "{\"traceEvents\":[]}");
  reader.read();
  CHECK(reader.data().damaged.size() == 3);
  CHECK(reader.data().timeline_json == "{\"traceEvents\":[]}");
}

TEST_CASE("pipes and folders in the place of files are no files") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "metrics.jsonl").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((folder / "run.json").c_str(), 0600) == 0);
  std::filesystem::create_directory(folder / "devices.jsonl");
  CHECK(engine::read_run(folder.path()).state == RunState::Empty);
}

}  // namespace
