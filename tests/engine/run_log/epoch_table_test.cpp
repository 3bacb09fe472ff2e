#include "engine/run_log/epoch_table.h"

#include <filesystem>
#include <string>
#include <sys/stat.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::EpochTable;

const std::string kTitles =
    "epoch,step,learning_rate,training_loss,test_loss,test_accuracy,seconds,images_per_s,"
    "energy_j\n";

std::string step(int number, double loss, const std::string& more = "") {
  return R"({"step":)" + std::to_string(number) + R"(,"loss":)" + std::to_string(loss) +
         R"(,"learning_rate":0.5,"step_s":2.0,"images_per_s":4.0)" + more + "}\n";
}

const std::string kTested =
    R"({"step":2,"epoch":1.0,"accuracy":0.75,"test_loss":0.125,"test_pictures":8})"
    "\n";

TEST_CASE("a row is the mean loss, the seconds and the test of an epoch") {
  const tests::TemporaryFolder folder;
  EpochTable table(folder / "epochs.csv", folder / "metrics.jsonl", "accuracy", 0);
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles);
  tests::put_bytes(folder / "metrics.jsonl", step(1, 3) + step(2, 1) + kTested);
  table.add_epoch(2, 1);
  const std::string first = "1,2,0.5,2,0.125,0.75,4,4,\n";
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles + first);
  tests::put_bytes(folder / "metrics.jsonl",
                   step(1, 3) + step(2, 1) + kTested + step(3, 0.5, R"(,"energy_j":6)"));
  table.add_epoch(3, 1.5);
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles + first + "2,3,0.5,0.5,,,2,4,6\n");
}

TEST_CASE("the energy of an epoch is that until its test, or without one that of its steps") {
  const tests::TemporaryFolder folder;
  EpochTable table(folder / "epochs.csv", folder / "metrics.jsonl", "accuracy", 0);
  const std::string tested =
      R"({"step":1,"accuracy":0.75,"test_loss":0.125,"energy_j":8,"run_energy_j":8})"
      "\n";
  tests::put_bytes(folder / "metrics.jsonl", step(1, 3, R"(,"energy_j":6)") + tested);
  table.add_epoch(1, 1);
  const std::string first = "1,1,0.5,3,0.125,0.75,2,4,8\n";
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles + first);
}

TEST_CASE("of a detector it is mean average precision, where there was anything to be found") {
  const tests::TemporaryFolder folder;
  EpochTable table(folder / "epochs.csv", folder / "metrics.jsonl", "map50", 0);
  const std::string titles =
      "epoch,step,learning_rate,training_loss,test_loss,test_map50,seconds,images_per_s,energy_j\n";
  tests::put_bytes(folder / "metrics.jsonl",
                   step(1, 3) + R"({"step":1,"map50":0.5,"map":0.25,"test_loss":0.125})" + "\n");
  table.add_epoch(1, 1);
  const std::string first = "1,1,0.5,3,0.125,0.5,2,4,\n";
  CHECK(tests::bytes_of(folder / "epochs.csv") == titles + first);
  tests::put_bytes(folder / "metrics.jsonl",
                   step(1, 3) + R"({"step":1,"map50":0.5,"map":0.25,"test_loss":0.125})" + "\n" +
                       step(2, 3) + R"({"step":2,"map50":null,"map":null,"test_loss":0.5})" + "\n");
  table.add_epoch(2, 2);
  CHECK(tests::bytes_of(folder / "epochs.csv") == titles + first + "2,2,0.5,3,0.5,,2,4,\n");
}

TEST_CASE("a run that goes on keeps earlier rows, and the steps of an epoch that it has begun") {
  const tests::TemporaryFolder folder;
  const std::string first = "1,2,0.5,2,0.125,0.75,4,4,\n";
  tests::put_bytes(folder / "epochs.csv",
                   kTitles + first + "damaged\n2,4,0.5,2,0.1,0.8,4,4,\n3,6,cut o");
  tests::put_bytes(folder / "metrics.jsonl", step(1, 3) + step(2, 1) + kTested + step(3, 5));
  EpochTable table(folder / "epochs.csv", folder / "metrics.jsonl", "accuracy", 3);
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles + first);
  tests::put_bytes(folder / "metrics.jsonl",
                   step(1, 3) + step(2, 1) + kTested + step(3, 5) + step(4, 7));
  table.add_epoch(4, 2);
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles + first + "2,4,0.5,6,,,4,4,\n");
  table.copy_to(folder / "copy.csv");
  CHECK(tests::bytes_of(folder / "copy.csv") == tests::bytes_of(folder / "epochs.csv"));
}

TEST_CASE("a line that is longer than any row is left out, and a pipe is not waited for") {
  const tests::TemporaryFolder folder;
  const std::string first = "1,2,0.5,2,0.125,0.75,4,4,\n";
  tests::put_bytes(
      folder / "epochs.csv",
      kTitles + first + "2,3," + std::string(5000, '1') + "\n2,4,0.5,2,0.1,0.8,4,4,\n");
  const EpochTable table(folder / "epochs.csv", folder / "metrics.jsonl", "accuracy", 4);
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles + first + "2,4,0.5,2,0.1,0.8,4,4,\n");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink(folder / "pipe", folder / "linked.csv");
  const EpochTable other(folder / "linked.csv", folder / "metrics.jsonl", "accuracy", 4);
  CHECK(tests::bytes_of(folder / "linked.csv") == kTitles);
}

TEST_CASE("a run from the start keeps no row of an earlier one") {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / "epochs.csv", kTitles + "1,2,0.5,2,0.125,0.75,4,4,\n");
  const EpochTable table(folder / "epochs.csv", folder / "metrics.jsonl", "accuracy", 0);
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles);
}

TEST_CASE("an epoch of which nothing is known has an empty row") {
  const tests::TemporaryFolder folder;
  EpochTable table(folder / "epochs.csv", folder / "metrics.jsonl", "accuracy", 0);
  table.add_epoch(7, 1);
  CHECK(tests::bytes_of(folder / "epochs.csv") == kTitles + "1,7,,,,,0,,\n");
}

}  // namespace
