#include "engine/run_view/top_screen.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::RunData;
using engine::RunState;
using engine::TopView;
using Lines = std::vector<std::string>;

constexpr engine::ScreenStyle kAscii{.colours = false, .unicode = false};
constexpr engine::ScreenStyle kPlain{.colours = false, .unicode = true};

Region rows(Index begin, Index end) {
  return {{0, 8}, {0, 6}, {begin, end}, {0, 24}};
}

// A run of some ranks that has done half of its 20 steps.
RunData half_way(int ranks) {
  RunData data;
  data.folder = "runs/a";
  data.state = RunState::Running;
  engine::RunSummary info;
  info.model = "models/lenet5.cfg";
  info.data = "photos";
  info.last_step = 20;
  info.epoch_steps = 10;
  info.batch = 8;
  info.training_pictures = 80;
  engine::PlanOutline plan;
  plan.batch = 8;
  plan.ranks = ranks;
  plan.layers = {{"convolutional", 6, 24, 24}};
  plan.groups = {{0, 0, false, {}}};
  for (int rank = 0; rank < ranks; ++rank) {
    info.ranks.push_back({rank, "pi" + std::to_string(rank), 4});
    const auto tile = rows(24 * rank / ranks, 24 * (rank + 1) / ranks);
    plan.groups[0].tiles.push_back({tile, tile});
    engine::StepTiming timing;
    timing.rank = rank;
    timing.step_s = 0.5;
    timing.forward_s = 0.1;
    timing.backward_s = 0.15;
    timing.update_s = 0;
    timing.exchanging_s = 0.125;
    timing.waiting_s = 0.125;
    timing.loading_s = 0;
    data.timings.push_back(timing);
    engine::DeviceSample sample;
    sample.t_s = 4;
    sample.rss_bytes = 100 << 20;
    sample.free_bytes = 300 << 20;
    sample.temperature_c = 61;
    data.devices[rank].samples = {sample};
  }
  data.plan = plan;
  data.info = info;
  for (int step = 1; step <= 10; ++step) {
    engine::StepRecord record;
    record.step = step;
    record.t_s = 0.5 * step;
    record.loss = 2 - 0.1 * step;
    record.step_s = 0.5;
    record.images_per_s = 16;
    record.learning_rate = 0.01;
    data.steps.push_back(record);
  }
  engine::EvaluationRecord evaluation;
  evaluation.step = 10;
  evaluation.accuracy = 0.875;
  evaluation.test_loss = 1.5;
  data.evaluations = {evaluation};
  data.events = {{0.0, 0, -1, "start", "training on 2 ranks"},
                 {4.5, 9, 1, "warning", "the meter has failed, so power is unknown from now on"}};
  return data;
}

int width_of(const Lines& lines) {
  int most = 0;
  for (const std::string& line : lines) {
    most = std::max(most, engine::screen_width(line));
  }
  return most;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

bool shows(const Lines& lines, const std::string& text) {
  return joined(lines).find(text) != std::string::npos;
}

TEST_CASE("the screen of a run of two ranks, in ASCII") {
  CHECK(joined(top_screen(half_way(2), {.columns = 80, .lines = 18, .style = kAscii})) ==
        R"( tessera  runs/a                                                * running  0:05
 models/lenet5.cfg on photos, 80 pictures, batch 8, 2 ranks
 step 10 of 20, epoch 1 of 2  ================----------------  50 %  0:05 left
 loss 1.0000   accuracy 87.50 %   step 500 ms   16 images/s lately   lr 0.01
- loss, o test loss --------------------------- events -------------------------
    1.9+********                                  0:00 training on 2 ranks
       |       *****                              0:05 rank 1: the meter has
       |           *****                               failed, so power is
       |               *********            o          unknown from now on
       |                       *****
       |                           *****
      1+                               ******
       +- 1 ---------------------------- 10 -
- devices - # computing = exchanging . waiting % loading -----------------------
 rank host tile     step                                                MiB  C
    0 pi0  r0-12  500 ms #####################===========.......... 100/400 61
    1 pi1  r12-24 500 ms #####################===========.......... 100/400 61
                                                                        q quits
)");
}

TEST_CASE("the screen of a run of two ranks, with Unicode") {
  CHECK(joined(top_screen(half_way(2), {.columns = 72, .lines = 18, .style = kPlain})) ==
        R"( tessera  runs/a                                        ● running  0:05
 models/lenet5.cfg on photos, 80 pictures, batch 8, 2 ranks
 step 10 of 20, epoch 1 of 2  ━━━━━━━━━━━━────────────  50 %  0:05 left
 loss 1.0000   accuracy 87.50 %   step 500 ms   16 images/s lately
─ loss, ◆ test loss ─────────────────── events ─────────────────────────
    1.9┤⠙⠲⢤⣀                              0:00 training on 2 ranks
       │   ⠈⠙⠲⠤⣄⡀                         0:05 rank 1: the meter has
       │        ⠉⠓⠦⣄⡀                          failed, so power is
       │            ⠉⠙⠲⢤⣀           ◆          unknown from now on
       │                ⠈⠙⠲⠤⣄⡀
       │                     ⠉⠓⠦⣄⡀
      1┤                         ⠉⠓⠦⣄
       └─ 1 ──────────────────── 10 ─
─ devices ─ █ computing ▓ exchanging ░ waiting ▒ loading ───────────────
 rank host tile     step                                        MiB  C
    0 pi0  r0-12  500 ms █████████████████▓▓▓▓▓▓▓▓▓░░░░░░░░ 100/400 61
    1 pi1  r12-24 500 ms █████████████████▓▓▓▓▓▓▓▓▓░░░░░░░░ 100/400 61
                                                                q quits
)");
}

TEST_CASE("no screen is larger than its terminal, whatever the size") {
  for (const int ranks : {0, 1, 4, 16}) {
    const RunData data = ranks == 0 ? RunData() : half_way(ranks);
    for (const int columns : {1, 5, 20, 39, 60, 80, 131, 200, 400}) {
      for (const int lines : {1, 2, 3, 5, 9, 16, 24, 50, 120}) {
        CAPTURE(ranks);
        CAPTURE(columns);
        CAPTURE(lines);
        const Lines screen =
            top_screen(data, {.columns = columns, .lines = lines, .style = kPlain});
        CHECK(std::ssize(screen) == lines);
        CHECK(width_of(screen) <= columns);
      }
    }
  }
}

TEST_CASE("devices for which there is no room are said to be hidden, and come when scrolled to") {
  const RunData data = half_way(16);
  TopView view{.columns = 80, .lines = 24, .style = kPlain};
  Lines screen = top_screen(data, view);
  CHECK(shows(screen, "pi0 "));
  CHECK(!shows(screen, "pi15"));
  CHECK(shows(screen, "devices 0-10 of 16"));
  CHECK(last_first_device(data, view) == 5);
  view.first_device = 5;
  screen = top_screen(data, view);
  CHECK(!shows(screen, "pi0 "));
  CHECK(shows(screen, "pi15"));
  view.lines = 50;
  CHECK(last_first_device(data, view) == 0);
  CHECK(!shows(top_screen(data, view), "of 16,"));
}

TEST_CASE("a narrow screen leaves out what matters least, and keeps step time and memory") {
  const RunData data = half_way(2);
  const Lines wide = top_screen(data, {.columns = 100, .lines = 24, .style = kPlain});
  CHECK(shows(wide, "host"));
  CHECK(shows(wide, "r0-12"));
  const Lines narrow = top_screen(data, {.columns = 40, .lines = 24, .style = kPlain});
  CHECK(!shows(narrow, "r0-12"));
  CHECK(shows(narrow, "500 ms"));
  CHECK(shows(narrow, "100/400"));
}

TEST_CASE("a wide screen draws the tiles") {
  const Lines screen = top_screen(half_way(2), {.columns = 200, .lines = 50, .style = kPlain});
  CHECK(shows(screen, "tiles of layer 0"));
  CHECK(shows(screen, "├─"));
}

TEST_CASE("colours are escape sequences around the same text") {
  const RunData data = half_way(2);
  const Lines plain = top_screen(data, {.columns = 80, .lines = 24, .style = kPlain});
  Lines coloured =
      top_screen(data, {.columns = 80, .lines = 24, .style = {.colours = true, .unicode = true}});
  CHECK(plain != coloured);
  for (std::string& line : coloured) {
    for (std::size_t begin = line.find('\x1b'); begin != std::string::npos;
         begin = line.find('\x1b')) {
      line.erase(begin, line.find('m', begin) + 1 - begin);
    }
  }
  CHECK(plain == coloured);
}

TEST_CASE("a run that has ended says how and why") {
  RunData data = half_way(2);
  data.state = RunState::Failed;
  data.reason = "pi1 (rank 1) has not answered for 60 s";
  const Lines screen = top_screen(data, {.style = kPlain});
  CHECK(shows(screen, "● failed"));
  CHECK(shows(screen, data.reason));
  CHECK(!shows(screen, " left"));
}

TEST_CASE("what is wrong with a run is said: no news, silent devices, damaged files") {
  RunData data = half_way(2);
  data.devices[0].samples[0].t_s = 40;
  data.damaged = {{"metrics.jsonl", 2}, {"plan.json", 1}};
  const Lines screen = top_screen(data, {.columns = 120, .style = kPlain, .quiet_s = 65});
  CHECK(shows(screen, "silent 36 s"));
  CHECK(shows(screen, "no news for 1:05"));
  CHECK(shows(screen, "2 lines of metrics.jsonl left out: damaged"));
  CHECK(shows(screen, "plan.json left out: damaged"));
}

TEST_CASE("of many checkpoints the last one is shown, so that other events stay in sight") {
  RunData data = half_way(2);
  for (int step = 1; step <= 30; ++step) {
    data.events.push_back(
        {5.0 + step, step, -1, "checkpoint", "checkpoint after step " + std::to_string(step)});
  }
  const Lines screen = top_screen(data, {.columns = 80, .lines = 18, .style = kAscii});
  CHECK(shows(screen, "checkpoint after step 30"));
  CHECK_FALSE(shows(screen, "checkpoint after step 29"));
  CHECK(shows(screen, "training on 2 ranks"));
}

TEST_CASE("faults are among the events, and what they have cost stands below the numbers") {
  RunData data = half_way(2);
  const TopView view{.columns = 80, .lines = 18, .style = kAscii};
  CHECK_FALSE(shows(top_screen(data, view), "faults"));
  data.events = {{3.0, 6, -1, "fault", "rank 1 was killed"},
                 {4.0, 7, -1, "recovery", "training goes on after 4.1 s"}};
  data.faults = {.faults = 1, .lost_s = 4.125, .repeated_steps = 2};
  const Lines screen = top_screen(data, view);
  CHECK(screen[3].find(" loss 1.0000") == 0);
  CHECK(screen[4].find(" faults: 1, time lost 4.1 s, steps repeated 2") == 0);
  CHECK(shows(screen, "rank 1 was killed"));
  CHECK(shows(screen, "training goes on after"));
  for (const int lines : {1, 2, 5, 9, 15, 16, 40}) {
    CAPTURE(lines);
    const Lines small = top_screen(data, {.columns = 30, .lines = lines, .style = kPlain});
    CHECK(std::ssize(small) == lines);
    CHECK(width_of(small) <= 30);
  }
}

TEST_CASE("what files say cannot change the terminal") {
  RunData data = half_way(2);
  data.folder = "runs/\x1b[31ma\nb";
  data.info->model = "m\x1b]0;x\x07.cfg";
  data.info->ranks[0].host = "\xff\xfe 日本";
  data.events[0].text = "a\x1b[2Jb \t\r\nc";
  for (const std::string& line : top_screen(data, {.columns = 100, .style = kPlain})) {
    CHECK(line.find_first_of("\x1b\x07\r\n\t") == std::string::npos);
  }
}

TEST_CASE("without UTF-8 all of it is ASCII") {
  RunData data = half_way(4);
  data.folder = "runs/größe";
  for (const int columns : {40, 80, 200}) {
    const std::string screen =
        joined(top_screen(data, {.columns = columns, .lines = 50, .style = kAscii}));
    CHECK(std::none_of(screen.begin(), screen.end(), [](char c) { return (c & 0x80) != 0; }));
  }
}

}  // namespace
