#include "engine/page/page.h"

#include <string>
#include <string_view>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "engine/page/sections.h"
#include "engine/page/step_series.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::RunData;
using engine::RunState;
using tests::has;

constexpr const char* kEvil = "</style></title><script>alert(1)</script>\"'";

RunData trained() {
  RunData run;
  run.folder = "runs/a";
  run.state = RunState::Finished;
  run.info.emplace();
  run.info->model = "models/lenet5.cfg";
  run.info->last_step = 3;
  for (int step = 1; step <= 3; ++step) {
    engine::StepRecord record;
    record.step = step;
    record.loss = 2.0 / step;
    record.step_s = 0.5;
    record.learning_rate = 0.1;
    run.steps.push_back(record);
  }
  engine::EvaluationRecord evaluation;
  evaluation.step = 3;
  evaluation.accuracy = 0.75;
  run.evaluations.push_back(evaluation);
  return run;
}

// A PNG file of 2 x 3 pixels, as far as its sizes.
constexpr std::string_view kPngStart("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\3", 24);

// evaluation.json of a detector of two classes.
std::string detected() {
  return R"({"step":3,"map50":0.25,"coco":{"AP":0.125,"AP50":0.25,"APs":null},"voc_11_points":0.3,"voc_all_points":0.2,"iou":0.5,"score":0.25,)"
         R"("classes":[{"class":0,"name":"cup","objects":4,"ap50":0.25,"precision":0.5,"recall":0.25,"f1":0.333,"right":1,"wrong":1,"missed":3},)"
         R"({"class":1,"name":"<script>alert(4)</script>","objects":0,"ap50":null,"precision":null,"recall":null,"f1":null,"right":0,"wrong":0,"missed":0}],)"
         R"("confusion":[[1,0,3],[0,0,0],[1,0,0]],"curves":{"precision":[1,0.5,0],"f1":[0.2,0.4,0.1],"best_f1":0.4,"best_f1_score":0.5,)"
         R"("classes":[{"class":0,"precision":[1,0.5,0],"f1":[0.2,0.4,0.1]}]}})";
}

TEST_CASE("the page of an empty folder says of each part why it is not there") {
  RunData run;
  run.folder = "runs/none";
  const std::string page = run_page(run, {});
  CHECK(has(page, "<p class=\"state empty\">empty</p>"));
  CHECK(!has(page, "<figure"));
  for (const char* file : {"metrics.jsonl",
                           "plan.json",
                           "timing.jsonl",
                           "memory.json",
                           "devices.jsonl",
                           "evaluation.json",
                           "timeline.json",
                           "events.jsonl"}) {
    CAPTURE(file);
    CHECK(has(page, file));
  }
}

TEST_CASE("a run that is going says of when it is") {
  RunData run = trained();
  run.state = RunState::Running;
  CHECK(
      has(run_page(run, {.as_of = "2026-11-26 07:10 UTC"}), "running, as of 2026-11-26 07:10 UTC"));
  run.state = RunState::Finished;
  CHECK(!has(run_page(run, {.as_of = "2026-11-26 07:10 UTC"}), "as of"));
}

TEST_CASE("how a run ended stands in its head") {
  RunData run = trained();
  run.state = RunState::Failed;
  run.reason = "rank 3 on pi-4 has not answered";
  const std::string page = run_page(run, {});
  CHECK(has(page, "<p class=\"state failed\">failed</p>\n<p>rank 3 on pi-4 has not answered</p>"));
}

TEST_CASE("faults and recoveries are counted, listed, and marked over the steps") {
  RunData run = trained();
  CHECK(!has(run_page(run, {}), "faults: "));
  run.events = {{1, 1, -1, "fault", "rank 2 was killed"},
                {2, 2, -1, "recovery", "training goes on after 4.1 s; 1 step repeated"}};
  run.faults = {.faults = 1, .lost_s = 4.125, .repeated_steps = 1};
  const std::string page = run_page(run, {});
  CHECK(has(page, "<p>faults: 1, time lost 4.1 s, steps repeated 1</p>\n</header>"));
  CHECK(has(page, "<td class=\"text\">fault</td><td class=\"text\">rank 2 was killed</td>"));
  CHECK(has(page, "<td class=\"text\">recovery</td>"));
  const auto marks = step_marks(run);
  REQUIRE(marks.size() == 2);
  CHECK(marks[0].x == 1);
  CHECK(marks[0].label == "fault");
  CHECK(marks[0].strong);
  CHECK(marks[1].label == "recovery");
}

TEST_CASE("a run that is resumed after a fault is marked as the fault, and only there") {
  RunData run;
  run.events = {{1, 3, -1, "resume", "by hand"},
                {2, 8, -1, "fault", "rank 1 was killed"},
                {2, 8, -1, "fault", "rank 2 was killed"},
                {2, 8, -1, "resume", "after a fault"},
                {3, 9, -1, "recovery", "training goes on"},
                {4, 12, -1, "resume", "by hand"},
                {5, 14, -1, "fault", "rank 1 was killed"}};
  std::string labels;
  for (const auto& mark : step_marks(run)) {
    labels += mark.label + " ";
  }
  CHECK(labels == "resume fault fault recovery resume fault ");
}

TEST_CASE("a page shows what its run knows: accuracy, loss, step time") {
  const std::string page = run_page(trained(), {});
  CHECK(has(page, "<h1>lenet5</h1>"));
  CHECK(has(page, "75.0\u00a0%"));
  CHECK(has(page, "500\u00a0ms"));
  CHECK(has(page, "<dd>0.6667<small>training, of step 3</small>"));
  CHECK(has(page, "<figure id=\"loss\">"));
  CHECK(has(page, "<figure id=\"accuracy\">"));
  CHECK(!has(page, "<figure id=\"temperature\">"));
}

TEST_CASE("a page says where pictures were kept and how often they were decoded") {
  RunData run = trained();
  CHECK(!has(run_page(run, {}), "<th scope=\"row\">Pictures</th>"));
  run.info->cache = {.place = "memory", .bytes = 3 << 20, .kept = 2166, .decoded = 114};
  CHECK(has(run_page(run, {}),
            "decoded once, in memory, 3.00\u00a0MiB: decoded 114 times, found decoded 2166 times"));
  run.info->cache->place = "/data/<kept>";
  CHECK(has(run_page(run, {}), "decoded once, in /data/&lt;kept&gt;, "));
  run.info->cache->bytes = 0;  // it has not ended
  CHECK(has(run_page(run, {}), "decoded once, in /data/&lt;kept&gt;<"));
}

TEST_CASE("a page says what to do where steps wait for pictures that are not kept") {
  RunData run = trained();
  const auto advises = [&](const char* place, double loading_s) {
    run.info->cache = {.place = place};
    engine::StepTiming timing;
    timing.steps = 10;
    timing.step_s = 1;
    timing.loading_s = loading_s;
    run.timings = {timing};
    return has(run_page(run, {}), "with --cache memory or --cache FOLDER it is decoded once");
  };
  CHECK(advises("off", 0.96));
  CHECK(!advises("off", 0.1));
  CHECK(!advises("memory", 0.96));
  CHECK(!advises("", 0.96));
}

TEST_CASE("a page needs nothing from elsewhere, and says so to the browser") {
  const std::string page = run_page(trained(), {});
  CHECK(has(page, "default-src 'none'"));
  CHECK(!has(page, "href=\"http"));
  CHECK(!has(page, "https://"));
  CHECK(!has(page, " src="));
}

TEST_CASE("no text of a run gets out of its place in the page") {
  RunData run = trained();
  run.folder = kEvil;
  run.reason = kEvil;
  run.info->model = std::string(kEvil) + ".cfg";
  run.info->data = kEvil;
  run.info->command = kEvil;
  run.info->version = kEvil;
  run.info->started = kEvil;
  run.info->ranks = {{0, kEvil, 4}};
  run.devices[0].host = kEvil;
  run.devices[0].power_source = kEvil;
  for (int second = 0; second < 5; ++second) {
    engine::DeviceSample sample;
    sample.t_s = second;
    sample.power_w = 3;
    sample.rss_bytes = 1e6;
    run.devices[0].samples.push_back(sample);
  }
  run.events = {{1, 1, 0, kEvil, kEvil}, {2, 2, -1, "warning", kEvil}};
  run.damaged[kEvil] = 2;
  run.evaluation_json =
      R"({"classes":[{"name":"</script><script>alert(2)</script>","pictures":4,"recall":0.5,"precision":1}],"confusion":[[2]]})";
  run.timeline_json =
      R"({"traceEvents":[{"name":"</title><script>alert(3)</script>","cat":"compute","ph":"X","pid":0,"ts":0,"dur":9,"args":{"phase":"forward"}}]})";
  const std::string page = run_page(run, {.title = kEvil, .as_of = kEvil});
  CHECK(has(page, "id=\"confusion\""));
  CHECK(has(page, "id=\"timeline\""));
  std::size_t scripts = 0;
  for (std::size_t at = page.find("<script"); at != std::string::npos;
       at = page.find("<script", at + 1)) {
    ++scripts;
  }
  CHECK(scripts == 1);
  CHECK(!has(page, "alert(1)</script"));
  CHECK(!has(page, "alert(2)</script"));
  CHECK(!has(page, "alert(3)</script"));
}

TEST_CASE("the page of a detector has its curves, classes, confusion matrix and pictures") {
  RunData run = trained();
  run.finds_objects = true;
  run.evaluation_json = detected();
  run.training_sheet = std::string(kPngStart) + "rest";
  std::string page = run_page(run, {});
  for (const char* part : {"precision-recall",
                           "f1",
                           "classes-table",
                           "average-precision",
                           "confusion",
                           "training-pictures"}) {
    CAPTURE(part);
    CHECK(has(page, "<figure id=\"" + std::string(part) + "\""));
  }
  CHECK(has(page, "<tr><th scope=\"row\">cup</th><td data-name=\"objects\">4</td>"));
  CHECK(has(page, "The highest mean is 40.0\u00a0%, at a score of 0.50."));
  CHECK(has(page, "background"));
  CHECK(has(page,
            "width=\"2\" height=\"3\" "
            "src=\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAADcmVzdA==\""));
  CHECK(!has(page, "id=\"test-pictures\""));
  CHECK(!has(page, "<script>alert"));
  run.test_sheet = "no picture";
  page = run_page(run, {});
  CHECK(has(page, "test-pictures.png is no PNG file"));
}

TEST_CASE("the last test and the best one are both shown, by their names, where they are two") {
  RunData run = trained();
  run.finds_objects = true;
  run.evaluation_json = detected();
  run.best_evaluation_json = detected();
  std::string page = run_page(run, {});
  CHECK(has(page, "After step 3, the best test so far: its weights are in best.safetensors."));
  CHECK(!has(page, "in the best test"));
  run.best_evaluation_json.replace(run.best_evaluation_json.find("\"step\":3"), 8, "\"step\":2");
  page = run_page(run, {});
  CHECK(has(page, "After step 3; the best test was after step 2, see below."));
  CHECK(has(page, "What was found in the best test"));
  CHECK(has(page, "After step 2: its weights are in best.safetensors."));
  CHECK(has(page, "<figure id=\"confusion\""));
  CHECK(has(page, "<figure id=\"best-confusion\""));
}

TEST_CASE("of one rank there are no tiles, and no chart of what is 0 all the time") {
  RunData run = trained();
  run.plan.emplace();
  run.plan->ranks = 1;
  CHECK(tiles_section(run).html.empty());
  CHECK(tiles_section(run).missing.empty());
  for (int second = 0; second < 3; ++second) {
    engine::DeviceSample sample;
    sample.t_s = second;
    sample.wait_s = 0;
    sample.cpu_user_s = second;
    sample.cpu_system_s = 0;
    run.devices[0].samples.push_back(sample);
  }
  const engine::PageSection devices = devices_section(run);
  CHECK(has(devices.html, "<figure id=\"processor\""));
  CHECK(!has(devices.html, "<figure id=\"waiting\""));
  CHECK(!has(devices.missing, "waiting"));
}

TEST_CASE("a detector's evaluation that is something else is left out with a sentence") {
  RunData run = trained();
  run.finds_objects = true;
  for (const char* text : {"",
                           "[]",
                           "{}",
                           "nonsense",
                           R"({"classes":[{"name":"a"}]})",
                           R"({"classes":[],"coco":{},"curves":{}})",
                           R"({"classes":[],"coco":{},"confusion":3})"}) {
    CAPTURE(text);
    run.evaluation_json = text;
    CHECK(has(detection_section(run).missing, "evaluation.json"));
  }
  run.evaluation_json =
      R"({"classes":[{"name":"a"}],"coco":{},"confusion":[[1,2,3],[4],[]],"curves":{"precision":[],"f1":[0.5],"classes":[{"class":7,"precision":[1],"f1":[]}]}})";
  CHECK(!detection_section(run).html.empty());
}

TEST_CASE("files that are JSON of something else leave their sections out with a sentence") {
  RunData run = trained();
  for (const char* text : {"[]",
                           "{}",
                           "{\"classes\":3,\"traceEvents\":3}",
                           "{\"classes\":[{}],\"traceEvents\":[{\"ph\":\"X\"}]}",
                           "nonsense"}) {
    CAPTURE(text);
    run.evaluation_json = text;
    run.timeline_json = text;
    CHECK(has(classes_section(run).missing, "evaluation.json"));
    CHECK(has(timeline_section(run).missing, "timeline.json"));
  }
}

TEST_CASE("a confusion matrix that does not fit its classes is survived") {
  RunData run = trained();
  run.evaluation_json =
      R"({"classes":[{"name":"a","recall":null,"precision":0.5}],"confusion":[[1,2,3],[4],[]]})";
  CHECK(!classes_section(run).html.empty());
}

TEST_CASE("predicted and measured parts of a step stand side by side for each rank") {
  RunData run = trained();
  for (int rank = 0; rank < 2; ++rank) {
    engine::StepTiming timing;
    timing.rank = rank;
    timing.steps = 10;
    timing.forward_s = 0.2;
    timing.waiting_s = 0.1;
    run.timings.push_back(timing);
    timing.forward_s = 0.4;
    timing.steps = 30;
    run.timings.push_back(timing);
    run.predicted.push_back(timing);
  }
  const std::string html = step_time_section(run).html;
  CHECK(has(html, "rank 0, predicted: forward 400\u00a0ms"));
  CHECK(has(html, "rank 1, measured: forward 350\u00a0ms"));  // the mean of 40 steps
}

TEST_CASE("the plan's tiles are drawn group by group with what is exchanged and computed twice") {
  RunData run = trained();
  run.plan.emplace();
  run.plan->batch = 2;
  run.plan->ranks = 2;
  run.plan->image_channels = 3;
  run.plan->image_rows = 8;
  run.plan->image_cols = 8;
  run.plan->layers = {{"convolutional", 4, 8, 8}};
  engine::OutlinedGroup group;
  group.tiles = {{{{0, 2}, {0, 4}, {0, 4}, {0, 8}}, {{0, 2}, {0, 4}, {0, 4}, {0, 8}}},
                 {{{0, 2}, {0, 4}, {4, 8}, {0, 8}}, {{0, 2}, {0, 4}, {4, 8}, {0, 8}}}};
  group.reads = {{-1, {{{0, 2}, {0, 3}, {0, 5}, {0, 8}}, {{0, 2}, {0, 3}, {3, 8}, {0, 8}}}}};
  group.messages = 2;
  group.message_bytes = 2048;
  run.plan->groups = {group};
  const std::string html = tiles_section(run).html;
  CHECK(has(html, "layer 0: 2x1 tiles"));
  CHECK(has(html, "image 3x8x8"));
  CHECK(has(html, "output 4x8x8"));
  CHECK(has(html, "2.0 KiB in 2 messages"));
  CHECK(has(html, "class=\"halo\""));
}

}  // namespace
