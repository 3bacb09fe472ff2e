// The files of a run's log, as engine/run_view reads them.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/files/atomic_file.h"
#include "engine/files/written_bytes.h"
#include "engine/run_log/event_log.h"
#include "engine/run_log/run_summary_file.h"
#include "engine/run_log/step_timing.h"
#include "engine/run_view/run_reader.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::known;
using engine::read_run;
using engine::RunClock;
using engine::RunState;
using tests::bytes_of;
using tests::has;
using tests::TemporaryFolder;

engine::RunSummary some_summary() {
  engine::RunSummary summary;
  summary.version = "tessera 0.1.0";
  summary.model = "m\xff.cfg";
  summary.data = "photos";
  summary.command = "tessera train";
  summary.first_step = 6;
  summary.last_step = 20;
  summary.epoch_steps = 10;
  summary.batch = 4;
  summary.seed = 3;
  summary.augment_variants = 2;
  summary.training_pictures = 40;
  summary.class_names = {"a", "b\n"};
  summary.ranks = {{0, "pi1", 4}, {1, "pi2", 2}};
  summary.memory_limit_bytes = 1 << 20;
  return summary;
}

TEST_CASE("run.json says what was started, and how it ended first") {
  const TemporaryFolder folder;
  engine::RunSummaryFile file;
  CHECK(!file.end("failed", "it has not begun", 1));
  file.begin(folder / "run.json", some_summary(), false);
  engine::RunData data = read_run(folder.path());
  REQUIRE(data.info);
  CHECK(data.state == RunState::Interrupted);  // nobody has the folder
  CHECK(data.info->first_step == 6);
  CHECK(data.info->last_step == 20);
  CHECK(data.info->augment_variants == 2);
  CHECK(data.info->class_names == std::vector<std::string>{"a", "b\n"});
  REQUIRE(data.info->ranks.size() == 2);
  CHECK(data.info->ranks[1].host == "pi2");
  CHECK(data.info->ranks[1].threads == 2);
  CHECK(data.info->memory_limit_bytes == 1 << 20);
  CHECK(!known(data.info->predicted_step_s));
  CHECK(data.info->ended.empty());
  CHECK(has(bytes_of(folder / "run.json"), "\"exit_code\": null"));
  CHECK(!known(data.info->written_bytes));
  const auto before = static_cast<double>(engine::bytes_written());
  engine::write_atomically(folder / "checkpoint", std::string(100000, 'x'));
  const auto written = static_cast<double>(engine::bytes_written()) - before;
  CHECK(written == 100000);
  CHECK(file.end("finished", "", 0));
  CHECK(!file.end("failed", "too late", 2));
  CHECK(has(bytes_of(folder / "run.json"), "\"exit_code\": 0,"));
  data = read_run(folder.path());
  CHECK(data.state == RunState::Finished);
  CHECK(data.reason.empty());
  // And what was written into the file itself when the run began.
  CHECK(data.info->written_bytes >= 100000);
  CHECK(data.info->written_bytes < 110000);
  CHECK(data.info->written_s >= 0);
  CHECK(data.info->ended.size() == std::string("2026-11-26T07:10:20Z").size());
}

TEST_CASE("a run that goes on keeps its first start") {
  const TemporaryFolder folder;
  std::ofstream(folder / "run.json") << R"({"started":"2020-01-02T03:04:05Z","first_step":1})";
  engine::RunSummaryFile().begin(folder / "run.json", some_summary(), true);
  engine::RunData data = read_run(folder.path());
  CHECK(data.info->started == "2020-01-02T03:04:05Z");
  CHECK(data.info->first_step == 1);
  engine::RunSummaryFile().begin(folder / "run.json", some_summary(), false);
  data = read_run(folder.path());
  CHECK(data.info->started != "2020-01-02T03:04:05Z");
  CHECK(data.info->first_step == 6);
}

TEST_CASE("events have their time, step and rank, and those of before the file come first") {
  const TemporaryFolder folder;
  const RunClock clock(Communicator::self(), 100);
  {
    engine::EventLog log;
    log.add("warning", "early");
    log.add("warning", "early, too", 1);
    log.open(folder / "events.jsonl", 0, clock);
    log.set_step(7);
    log.add("best", "epoch \xff 1");
    log.copy_to(folder / "copy.jsonl");
  }
  engine::RunData data = read_run(folder.path());
  REQUIRE(data.events.size() == 3);
  CHECK(data.damaged.empty());
  CHECK(data.events[0].text == "early");
  CHECK(data.events[0].rank == -1);
  CHECK(data.events[1].rank == 1);
  CHECK(data.events[2].kind == "best");
  CHECK(data.events[2].step == 7);
  CHECK(data.events[2].t_s >= 100);
  std::ifstream copy(folder / "copy.jsonl");
  CHECK(std::count(std::istreambuf_iterator<char>(copy), {}, '\n') == 3);
  engine::EventLog resumed;
  resumed.open(folder / "events.jsonl", 5, clock);  // the event of step 7 is to come again
  data = read_run(folder.path());
  CHECK(data.events.size() == 2);
}

TEST_CASE(
    "an event has what it was given beside its text, costs as numbers, and another has none") {
  const TemporaryFolder folder;
  const RunClock clock(Communicator::self());
  engine::EventLog log;
  log.add("recovery", "early", -1, 4, {.cost = engine::FaultCost{4.1254, 1}});
  log.open(folder / "events.jsonl", 0, clock);
  log.add("recovery", "late", 2, 9, {.cost = engine::FaultCost{0, 12}});
  log.add("fault", "gone", -1, {}, {.device = "pi3", .ago_s = 60});
  log.add("warning", "hot");
  std::ifstream file(folder / "events.jsonl");
  std::string line;
  std::getline(file, line);
  CHECK(has(line,
            R"("step":4,"rank":null,"kind":"recovery","text":"early","lost_s":4.125,)"
            R"("repeated_steps":1})"));
  std::getline(file, line);
  CHECK(has(line, R"("text":"late","lost_s":0.0,"repeated_steps":12})"));
  std::getline(file, line);
  CHECK(has(line, R"("kind":"fault","text":"gone","device":"pi3"})"));
  std::getline(file, line);
  CHECK(has(line, R"("kind":"warning","text":"hot"})"));
}

TEST_CASE("an event is told of when it was, but not before the one before it") {
  const TemporaryFolder folder;
  engine::EventLog log;
  log.open(folder / "events.jsonl", 0, RunClock(Communicator::self(), 100));
  log.add("start", "started", -1, {}, {.ago_s = 50});
  log.add("fault", "gone", -1, {}, {.ago_s = 20});
  log.add("fault", "gone, too", -1, {}, {.ago_s = 70});
  log.add("resume", "resumed");
  const engine::RunData data = read_run(folder.path());
  REQUIRE(data.events.size() == 4);
  CHECK(data.events[0].t_s == doctest::Approx(50).epsilon(0.05));
  CHECK(data.events[1].t_s == doctest::Approx(80).epsilon(0.05));
  CHECK(data.events[2].t_s == data.events[1].t_s);
  CHECK(data.events[3].t_s >= 100);
}

TEST_CASE("that a device was lost is still known after the run was resumed from an earlier step") {
  const TemporaryFolder folder;
  const RunClock clock(Communicator::self(), 100);
  {
    engine::EventLog log;
    log.open(folder / "events.jsonl", 0, clock);
    log.add("start", "started on 3 ranks");
    log.set_step(5);
    log.add("checkpoint", "checkpoint after step 5");
    log.set_step(7);
    log.add("best", "epoch 1");
    log.add("failure", "pi2 (rank 1) has not answered for 60 s");
  }
  engine::EventLog resumed;
  resumed.open(folder / "events.jsonl", 5, clock);
  resumed.add("resume", "resumed after step 5 on 2 ranks");
  std::vector<std::string> kinds;
  for (const engine::RunEvent& event : read_run(folder.path()).events) {
    kinds.push_back(event.kind);
  }
  CHECK(kinds == std::vector<std::string>{"start", "checkpoint", "failure", "resume"});
}

TEST_CASE("the event of a test that is owed goes, that of the checkpoint before it stays") {
  const TemporaryFolder folder;
  const RunClock clock(Communicator::self());
  const std::filesystem::path path = folder / "events.jsonl";
  {
    engine::EventLog log;
    log.open(path, 0, clock);
    log.add("best", "epoch 1", -1, 3);
    log.add("checkpoint", "checkpoint after step 6", -1, 6);
    log.add("epoch", "epoch 2", -1, 6);
  }
  CHECK(engine::has_checkpoint_event(path, 6));
  CHECK_FALSE(engine::has_checkpoint_event(path, 3));
  CHECK(engine::has_test_event(path, 3));
  CHECK(engine::has_test_event(path, 6));
  engine::EventLog resumed;
  resumed.open(path, 6, clock, true);
  CHECK(engine::has_checkpoint_event(path, 6));
  CHECK(engine::has_test_event(path, 3));
  CHECK_FALSE(engine::has_test_event(path, 6));
}

TEST_CASE("parts of a mean step add up to it, and predictions come first") {
  const TemporaryFolder folder;
  const RunClock clock(Communicator::self());
  engine::StepShares predicted;
  predicted.step_s = 2;
  const Communicator alone = Communicator::self();
  engine::StepTimingFile file(folder / "timing.jsonl", 0, {predicted}, clock, alone);
  engine::StepTimes times;
  times.load_s = 0.5;
  times.forward_s = 2;
  times.forward_exchange_s = 1;
  times.backward_s = 4;
  times.backward_exchange_s = 1.5;
  times.update_s = 1;
  times.update_exchange_s = 0.25;
  times.waiting_s = 2;
  times.step_s = 7.5;
  file.add(1, times);
  file.add(2, times);
  file.flush();
  file.flush();  // nothing is new
  const engine::RunData data = read_run(folder.path());
  REQUIRE(data.predicted.size() == 1);
  CHECK(data.predicted[0].step_s == 2);
  REQUIRE(data.timings.size() == 1);
  const engine::StepTiming& timing = data.timings[0];
  CHECK(timing.steps == 2);
  CHECK(timing.step == 2);
  CHECK(timing.forward_s == 1);
  CHECK(timing.backward_s == 2.5);
  CHECK(timing.update_s == 0.75);
  CHECK(timing.waiting_s == 2);
  CHECK(timing.exchanging_s == 0.75);
  CHECK(timing.loading_s == 0.5);
  CHECK(timing.computing_s() + timing.waiting_s + timing.exchanging_s + timing.loading_s ==
        doctest::Approx(timing.step_s));
}

TEST_CASE("where steps are long, each is told of") {
  const TemporaryFolder folder;
  const RunClock clock(Communicator::self());
  const Communicator alone = Communicator::self();
  engine::StepTimingFile file(folder / "timing.jsonl", 0, {}, clock, alone);
  engine::StepTimes times;
  times.step_s = 20;
  for (int step = 1; step <= 6; ++step) {
    file.add(step, times);
  }
  CHECK(read_run(folder.path()).timings.size() == 4);  // three together, then one by one
}

}  // namespace
