// The folder of a run of tessera 0.1.0, two ranks under `tessera run` of which one was killed: all
// that it tells is still read.

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/page/page.h"
#include "engine/run_view/run_reader.h"
#include "engine/run_view/top_screen.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

const std::filesystem::path kFolder = TESSERA_SOURCE_DIR "/tests/golden/run-0.1.0";

using Numbers = std::vector<double>;

}  // namespace

TEST_CASE("run.json, memory.json and plan.json of the last release are read in full") {
  const engine::RunData run = engine::read_run(kFolder);
  CHECK(run.state == engine::RunState::Finished);
  CHECK(run.reason.empty());
  CHECK(run.damaged.empty());
  REQUIRE(run.info);
  const auto& info = *run.info;
  CHECK(
      std::vector{info.version, info.model, info.data, info.sync, info.gradient_precision} ==
      std::vector<std::string>{"tessera 0.1.0", "colours.cfg", "pictures", "every-step", "exact"});
  CHECK(info.command.starts_with("tessera run -n 2 -- train colours.cfg --data pictures"));
  CHECK(info.started == "2026-11-29T09:55:17Z");
  CHECK(info.ended == "2026-11-29T09:55:19Z");
  CHECK(std::vector{info.first_step, info.last_step, info.epoch_steps, info.batch} ==
        std::vector<Index>{1, 15, 5, 8});
  CHECK(info.seed == 1);
  CHECK(info.replicas == 1);
  CHECK(info.inexact.empty());
  CHECK(info.training_pictures == 40);
  CHECK(info.testing_pictures == 12);
  CHECK(info.class_names == std::vector<std::string>{"green", "red"});
  REQUIRE(info.ranks.size() == 2);
  CHECK(info.ranks[1].rank == 1);
  CHECK(info.ranks[1].host == "vm");
  CHECK(info.ranks[1].threads == 1);
  CHECK(info.sent.bytes == Numbers{41984, 41984});
  CHECK(info.sent.steps == 8);
  CHECK(Numbers{info.predicted_step_s, info.memory_limit_bytes, info.written_bytes} ==
        Numbers{3.5614014405149614e-05, 314572800, 112362});
  CHECK(info.written_s == 1.3181815960015228);
  CHECK(info.cache_place == "memory");
  CHECK(Numbers{info.cache_bytes, info.cache_kept, info.cache_decoded} == Numbers{26624, 44, 52});
  REQUIRE(run.memory.size() == 2);
  CHECK(run.memory[1].rank == 1);
  CHECK(run.memory[1].planned.total() == 27626916);
  CHECK(run.memory[0].measured.kept == 27136);
  CHECK(run.memory[0].measured.total() == 27207524);
  CHECK(run.memory[0].peak_resident_bytes == 29525056);
  REQUIRE(run.plan);
  CHECK(std::vector{run.plan->batch, run.plan->image_channels, run.plan->image_rows} ==
        std::vector<Index>{8, 3, 12});
  CHECK(run.plan->layers.at(0).kind == "convolutional");
  CHECK(run.plan->layers.at(0).channels == 4);
  const engine::OutlinedGroup& group = run.plan->groups.at(0);
  CHECK(group.last == 2);
  CHECK(group.tiles.at(1).owned.images == Range{4, 8});
  CHECK(group.reads.at(0).map == -1);
  CHECK(group.reads.at(0).required.at(1) == Region{{4, 8}, {0, 3}, {0, 12}, {0, 12}});
  CHECK(group.multiply_adds == 133632);
}

TEST_CASE("the lines of the last release are read in full") {
  const engine::RunData run = engine::read_run(kFolder);
  CHECK(!run.finds_objects);
  REQUIRE(run.steps.size() == 15);
  const engine::StepRecord& step = run.steps[7];
  CHECK(step.step == 8);
  CHECK(Numbers{step.loss, step.learning_rate, step.step_s, step.images_per_s, step.load_s} ==
        Numbers{0.0017880425673872636, 0.01, 0.001759602, 4546.482670512991, 0.000313107});
  CHECK(Numbers{step.forward_s, step.backward_s, step.update_s, step.exchange_s} ==
        Numbers{0.000827854, 0.000161881, 0.000453756, 0.001021512});
  CHECK(Numbers{step.t_s, step.energy_j} == Numbers{1.397, 1.947});
  CHECK(!engine::known(run.steps[0].energy_j));
  REQUIRE(run.evaluations.size() == 3);
  const engine::EvaluationRecord& test = run.evaluations[1];
  CHECK(test.step == 10);
  CHECK(Numbers{test.epoch, test.accuracy, test.test_loss} == Numbers{2, 1, 0.0007347451134409006});
  CHECK(test.test_pictures == 12);
  CHECK(Numbers{test.energy_j, test.run_energy_j} == Numbers{5.241, 9.402});
  REQUIRE(run.devices.size() == 2);
  CHECK(run.samples == 10);
  const engine::RunDevice& device = run.devices.at(0);
  CHECK(device.host == "vm");
  CHECK(device.power_source == "file");
  CHECK(device.energy_j == 13.516);
  CHECK(device.cluster_energy_j == 13.516);
  CHECK(!engine::known(run.devices.at(1).energy_j));
  const auto& sample = device.samples.at(1);
  CHECK(sample.rank == 0);
  CHECK(sample.step == 7);
  CHECK(Numbers{sample.t_s, sample.cpu_user_s, sample.cpu_system_s, sample.wait_s} ==
        Numbers{1.001, 0.0168, 0.0503, 0.017});
  CHECK(Numbers{sample.rss_bytes, sample.free_bytes, sample.rx_bytes, sample.tx_bytes} ==
        Numbers{29417472, 24590815232, 160, 160});
  CHECK(Numbers{sample.rx_packets, sample.tx_packets, sample.power_w, sample.energy_j} ==
        Numbers{2, 2, 5, 5});
  CHECK(!engine::known(sample.temperature_c + sample.clock_hz + sample.throttled));
  REQUIRE(run.events.size() == 11);
  CHECK(run.events[3].kind == "fault");
  CHECK(run.events[3].text == "rank 0 on localhost was ended by SIGKILL");
  CHECK(run.events[3].step == 7);
  CHECK(run.events[3].rank == -1);
  CHECK(run.events[3].t_s == 1.152);
  CHECK(run.faults.faults == 1);
  CHECK(run.faults.lost_s == 0.402);
  CHECK(run.faults.repeated_steps == 1);
  CHECK(run.predicted.size() == 4);
  REQUIRE(run.timings.size() == 8);
  const engine::StepTiming& timing = run.timings[7];
  CHECK(std::vector<Index>{timing.rank, timing.step, timing.steps} == std::vector<Index>{1, 15, 5});
  CHECK(timing.computing_s() + timing.loading_s + timing.exchanging_s + timing.waiting_s ==
        doctest::Approx(timing.step_s));
}

TEST_CASE("top and the page show of the last release's run what they did then") {
  engine::RunData run = engine::read_run(kFolder);
  run.folder = "run";
  engine::TopView view;
  view.columns = 140;
  view.lines = 24;
  view.live = false;
  view.style = {.colours = false, .unicode = false};
  std::string screen;
  for (const std::string& line : engine::top_screen(run, view)) {
    screen += line + '\n';
  }
  CHECK(screen == tests::bytes_of(kFolder / "top.txt"));
  const std::string page = engine::run_page(run, {});
  for (const char* part : {"<dd>872",
                           "<dd>28.2",
                           "<dd>13.5",
                           "decoded once, in memory, 26.0 KiB: decoded 52 times",
                           "82.0 KiB in 8 steps",
                           "<figure id=\"timeline\"",
                           "<figure id=\"classes-chart\"",
                           "<figure id=\"confusion\"",
                           "<figure id=\"energy-by-device\"",
                           "<figure id=\"memory\""}) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  }
}
