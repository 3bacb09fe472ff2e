// The folder of a run of tessera 0.1.0, two ranks under `tessera run` of which one was killed, is
// still read in full.

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
using Texts = std::vector<std::string>;
using Counts = std::vector<Index>;

TEST_CASE("run.json, memory.json and plan.json of the last release are read in full") {
  const engine::RunData run = engine::read_run(kFolder);
  CHECK(run.state == engine::RunState::Finished);
  CHECK(run.damaged.empty());
  REQUIRE(run.info);
  const auto& info = *run.info;
  CHECK(Texts{info.version, info.model, info.data, info.sync, info.gradient_precision} ==
        Texts{"tessera 0.1.0", "colours.cfg", "pictures", "every-step", "exact"});
  CHECK(info.command.starts_with("tessera run -n 2 -- train colours.cfg --data pictures"));
  CHECK(Texts{info.started, info.ended} == Texts{"2026-11-29T09:55:17Z", "2026-11-29T09:55:19Z"});
  CHECK(Counts{info.first_step, info.last_step, info.epoch_steps, info.batch, info.replicas} ==
        Counts{1, 15, 5, 8, 1});
  CHECK(info.seed == 1);
  CHECK(info.inexact.empty());
  CHECK(Counts{info.training_pictures, info.testing_pictures} == Counts{40, 12});
  CHECK(info.class_names == Texts{"green", "red"});
  REQUIRE(info.ranks.size() == 2);
  CHECK(info.ranks[1].rank + info.ranks[1].threads == 2);
  CHECK(info.ranks[1].host == "vm");
  CHECK(info.sent().bytes == Numbers{41984, 41984});
  CHECK(info.sent().steps == 8);
  CHECK(
      Numbers{info.predicted_step_s, info.memory_limit_bytes, info.written_bytes, info.written_s} ==
      Numbers{3.5614014405149614e-05, 314572800, 112362, 1.3181815960015228});
  REQUIRE(info.cache);
  CHECK(info.cache->place == "memory");
  CHECK(Numbers{info.cache->bytes, info.cache->kept, info.cache->decoded} ==
        Numbers{26624, 44, 52});
  REQUIRE(run.memory.size() == 2);
  CHECK(run.memory[1].planned.total() == 27626916);
  CHECK(Counts{run.memory[0].measured.kept, run.memory[0].measured.total()} ==
        Counts{27136, 27207524});
  CHECK(run.memory[0].peak_resident_bytes == 29525056);
  REQUIRE(run.plan);
  CHECK(Counts{run.plan->batch, run.plan->image_channels, run.plan->image_rows} ==
        Counts{8, 3, 12});
  CHECK(run.plan->layers.at(0).kind == "convolutional");
  CHECK(run.plan->groups.at(0).tiles.at(1).owned.images == Range{4, 8});
  CHECK(run.plan->groups[0].reads.at(0).required.at(1) == Region{{4, 8}, {0, 3}, {0, 12}, {0, 12}});
}

TEST_CASE("the lines of the last release are read in full") {
  const engine::RunData run = engine::read_run(kFolder);
  REQUIRE(run.steps.size() == 15);
  const engine::StepRecord& step = run.steps[7];
  CHECK(Numbers{step.loss, step.learning_rate, step.step_s, step.images_per_s, step.load_s} ==
        Numbers{0.0017880425673872636, 0.01, 0.001759602, 4546.482670512991, 0.000313107});
  CHECK(Numbers{step.forward_s, step.backward_s, step.update_s, step.exchange_s, step.t_s} ==
        Numbers{0.000827854, 0.000161881, 0.000453756, 0.001021512, 1.397});
  CHECK(step.energy_j == 1.947);
  REQUIRE(run.evaluations.size() == 3);
  const engine::EvaluationRecord& test = run.evaluations[1];
  CHECK(Numbers{test.epoch, test.accuracy, test.test_loss, test.test_pictures} ==
        Numbers{2, 1, 0.0007347451134409006, 12});
  CHECK(Numbers{test.energy_j, test.run_energy_j} == Numbers{5.241, 9.402});
  REQUIRE(run.devices.size() == 2);
  const engine::RunDevice& device = run.devices.at(0);
  CHECK(Texts{device.host, device.power_source} == Texts{"vm", "file"});
  CHECK(Numbers{device.energy_j, device.cluster_energy_j} == Numbers{13.516, 13.516});
  const engine::DeviceSample& sample = device.samples.at(1);
  CHECK(Counts{step.step, test.step, sample.step, run.events.at(3).step} == Counts{8, 10, 7, 7});
  CHECK(Numbers{sample.t_s, sample.cpu_user_s, sample.cpu_system_s, sample.wait_s} ==
        Numbers{1.001, 0.0168, 0.0503, 0.017});
  CHECK(Numbers{sample.rss_bytes, sample.free_bytes, sample.rx_bytes, sample.tx_bytes} ==
        Numbers{29417472, 24590815232, 160, 160});
  CHECK(Numbers{sample.rx_packets, sample.tx_packets, sample.power_w, sample.energy_j} ==
        Numbers{2, 2, 5, 5});
  CHECK(Texts{run.events[3].kind, run.events[3].text} ==
        Texts{"fault", "rank 0 on localhost was ended by SIGKILL"});
  CHECK(Numbers{run.events[3].t_s, run.faults.lost_s} == Numbers{1.152, 0.402});
  CHECK(Counts{run.events[3].rank, run.faults.faults, run.faults.repeated_steps} ==
        Counts{-1, 1, 1});
  CHECK(run.predicted.size() == 4);
  const engine::StepTiming& timing = run.timings.at(7);
  CHECK(Counts{timing.rank, timing.step, timing.steps} == Counts{1, 15, 5});
  CHECK(timing.computing_s() + timing.loading_s + timing.exchanging_s + timing.waiting_s ==
        doctest::Approx(timing.step_s));
}

TEST_CASE("top and the page show of the last release's run what they did then") {
  engine::RunData run = engine::read_run(kFolder);
  run.folder = "run";
  const engine::TopView view{
      .columns = 140, .style = {.colours = false, .unicode = false}, .live = false};
  std::string screen;
  for (const std::string& line : engine::top_screen(run, view)) {
    screen += line + '\n';
  }
  CHECK(screen == tests::bytes_of(kFolder / "top.txt"));
  const std::string page = engine::run_page(run, {});
  for (const char* part : {"<dd>872",
                           "<dd>28.2",
                           "<dd>13.5",
                           "decoded 52 times",
                           "82.0 KiB in 8 steps",
                           "<figure id=\"timeline\"",
                           "<figure id=\"classes-chart\"",
                           "<figure id=\"confusion\""}) {
    CAPTURE(part);
    CHECK(page.find(part) != std::string::npos);
  }
}

}  // namespace
