// What a run that goes on is compared with.

#include "engine/train/checkpoints/training_record.h"

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::TrainingRecord;

TrainingRecord some_record() {
  return {.images = 8,
          .subdivisions = 2,
          .pictures = 48,
          .data_digest = "0123456789abcdef",
          .schedule_steps = 20,
          .batch_norm = engine::BatchNormMode::Frozen,
          .gradient_precision = "topk:0.1",
          .sync = "local:4",
          .replicas = 2,
          .settings = {{"momentum", "0.9"}, {"angle", "0"}},
          .inexact = {"gradients \"in part\"", "batch statistics of each tile"}};
}

}  // namespace

TEST_CASE("a record of training comes back from its text as it was") {
  CHECK(engine::parse_training_record(to_json(some_record()), "f") == some_record());
  TrainingRecord scaled = some_record();
  for (const double factor : {0.0, 1.4}) {
    scaled.multi_scale = factor;
    CHECK(engine::parse_training_record(to_json(scaled), "f") == scaled);
  }
  scaled.augment_variants = 3;
  CHECK(engine::parse_training_record(to_json(scaled), "f") == scaled);
}

TEST_CASE("another number of variants of pictures is said") {
  TrainingRecord before = some_record();
  TrainingRecord now = some_record();
  now.augment_variants = 3;
  REQUIRE(differences(before, now).size() == 1);
  CHECK(differences(before, now)[0] == "was trained without --augment-variants, now it is 3");
  before.augment_variants = 2;
  REQUIRE(differences(before, now).size() == 1);
  CHECK(differences(before, now)[0] == "was trained with --augment-variants 2, now it is 3");
}

TEST_CASE("another change of input sizes is said") {
  TrainingRecord now = some_record();
  now.multi_scale = 1.4;
  REQUIRE(differences(some_record(), now).size() == 1);
  CHECK(tests::has(differences(some_record(), now)[0], "with --multi-scale off, now it is 1.4"));
}

TEST_CASE("a damaged record of training is refused by the name of its file") {
  for (const char* text : {"", "[]", "{}", R"({"images":"x"})"}) {
    CAPTURE(text);
    CHECK(tests::has(
        tests::input_error_of([&] { (void)engine::parse_training_record(text, "f.safetensors"); }),
        "f.safetensors: "));
  }
  TrainingRecord scaled = some_record();
  for (const double factor : {-1.0, 0.5, 1e9}) {
    scaled.multi_scale = factor;
    CHECK(tests::has(
        tests::input_error_of([&] { (void)engine::parse_training_record(to_json(scaled), "f"); }),
        "cannot be read"));
  }
  scaled = some_record();
  scaled.augment_variants = -1;
  CHECK(tests::has(
      tests::input_error_of([&] { (void)engine::parse_training_record(to_json(scaled), "f"); }),
      "cannot be read"));
  std::string other = to_json(some_record());
  other.replace(other.find("frozen"), 6, "thawed");
  CHECK(tests::has(tests::input_error_of([&] { (void)engine::parse_training_record(other, "f"); }),
                   "unknown batch statistics"));
}

TEST_CASE("each thing that a run does otherwise is a phrase of its own") {
  CHECK(differences(some_record(), some_record()).empty());
  TrainingRecord now = some_record();
  now.data_digest = "123";
  REQUIRE(differences(some_record(), now).size() == 1);
  CHECK(tests::has(differences(some_record(), now)[0], "on other pictures"));
  now.pictures = 47;
  now.schedule_steps = 40;
  now.batch_norm = engine::BatchNormMode::Sync;
  now.gradient_precision = "exact";
  now.sync = "every-step";
  now.replicas = 1;
  now.subdivisions = 4;
  now.settings = {{"momentum", "0.5"}, {"angle", "7"}, {"gamma", "1"}};
  const auto found = differences(some_record(), now);
  REQUIRE(found.size() == 8);
  CHECK(tests::has(found[0], "48 pictures, now there are 47"));
  CHECK(tests::has(found[1], "--schedule-steps 20 keeps the old one"));
  CHECK(tests::has(found[2], "--batch-norm frozen, now it is sync"));
  CHECK(tests::has(found[5], "--replicas 2, now it is 1"));
  CHECK(tests::has(found[6], "--subdivisions 2, now it is 4"));
  CHECK(found[7] ==
        "was trained with angle=0, momentum=0.9, now the model file has angle=7, momentum=0.5");
}

TEST_CASE("outputs are others where layers or normalisation are, not where training alone is") {
  const engine::TrainingSettings before{{"anchors of layer 4", "8,8"},
                                        {"batch_norm_rule", "darknet"},
                                        {"learning_rate", "0.1"},
                                        {"probability of layer 2", "0.5"},
                                        {"scale_x_y of layer 4", "1"}};
  engine::TrainingSettings now = before;
  now["learning_rate"] = "0.2";
  now["probability of layer 2"] = "0.1";
  CHECK(!engine::output_difference(before, now));
  now["anchors of layer 4"] = "9,9";
  now["batch_norm_rule"] = "pytorch";
  CHECK(engine::output_difference(before, now).value_or("") ==
        "was trained with anchors of layer 4=8,8, batch_norm_rule=darknet, now the model file has "
        "anchors of layer 4=9,9, batch_norm_rule=pytorch");
}

TEST_CASE("a record that knows less is read, and what it does not know is no difference") {
  const TrainingRecord before = engine::parse_training_record(
      R"({"images":8,"pictures":48,"data_digest":"0123456789abcdef","schedule_steps":20,)"
      R"("batch_norm":"frozen","gradient_precision":"topk:0.1","sync":"every-step","inexact":[]})",
      "f");
  TrainingRecord now = some_record();
  now.sync = "every-step";
  now.replicas = 1;
  CHECK(differences(before, now).empty());
}

TEST_CASE("numbers of a record that no training can have are damage") {
  for (const auto& [right, wrong] : {std::pair{R"("images":8)", R"("images":0)"},
                                     std::pair{R"("images":8)", R"("images":-8)"},
                                     std::pair{R"("images":8)", R"("images":7)"},
                                     std::pair{R"("subdivisions":2)", R"("subdivisions":-2)"},
                                     std::pair{R"("subdivisions":2)", R"("subdivisions":3)"}}) {
    std::string text = to_json(some_record());
    text.replace(text.find(right), std::string(right).size(), wrong);
    CAPTURE(wrong);
    CHECK(tests::has(tests::input_error_of([&] { (void)engine::parse_training_record(text, "f"); }),
                     "another version of this program wrote the file, or it is damaged"));
  }
}
