// What a file of metrics keeps of a run that goes on, and what it says it has lost.

#include "engine/run_log/metrics_file.h"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

std::string step_line(int step) {
  return fmt::format(R"({{"step":{},"loss":0.5,"t_s":{}}})", step, step);
}

std::string step_lines(const std::vector<int>& steps) {
  std::string text;
  for (const int step : steps) {
    text += step_line(step) + "\n";
  }
  return text;
}

struct Resumed {
  std::optional<std::string> damage;  // after the path
  std::string text;                   // that was kept
};

// Goes on after step 5.
Resumed resumed(const std::string& text) {
  const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  tests::put_bytes(path, text);
  std::optional<std::string> damage;
  {
    const engine::MetricsFile file(path, 5);
    damage = file.damage();
  }
  if (damage) {
    REQUIRE(damage->starts_with(path.string() + ": "));
    damage->erase(0, path.string().size() + 2);
  }
  return {damage, tests::bytes_of(path)};
}

}  // namespace

TEST_CASE("a file with a line for each step has lost nothing") {
  CHECK_FALSE(resumed(step_lines({1, 2, 3, 4, 5})).damage);
  CHECK_FALSE(resumed(step_lines({1, 2, 3, 4, 5, 6, 7})).damage);  // steps that are done again
  CHECK_FALSE(resumed(step_lines({4, 5})).damage);                 // of a run that began elsewhere
  CHECK_FALSE(resumed("").damage);
}

TEST_CASE("half a last line is left out, which is said with the step that has none") {
  const Resumed found = resumed(step_lines({1, 2, 3, 4}) + step_line(5).substr(0, 9));
  CHECK(found.damage == "1 damaged line is left out; step 5 has no line");
  CHECK(found.text == step_lines({1, 2, 3, 4}));
  CHECK(resumed(step_lines({1, 2, 3, 4, 5}) + R"({"st)").damage == "1 damaged line is left out");
}

TEST_CASE("a last line that lacks its end alone is whole") {
  const Resumed found = resumed(step_lines({1, 2, 3, 4}) + step_line(5));
  CHECK_FALSE(found.damage);
  CHECK(found.text == step_lines({1, 2, 3, 4, 5}));
}

TEST_CASE("damage inside and steps without a line are counted") {
  CHECK(resumed(step_lines({1}) + std::string(3, '\0') + "\n[" + std::string(100, '[') + "\n" +
                step_lines({4, 5}))
            .damage == "2 damaged lines are left out; 2 steps from 2 to 3 have no line");
  CHECK(resumed(step_lines({1, 3})).damage == "3 steps from 2 to 5 have no line");
  CHECK(resumed(step_lines({1, 2, 4, 5})).damage == "step 3 has no line");
}

TEST_CASE("a test that is owed goes, with no other line of its step and no other test") {
  const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  const std::string test = R"({"step":4,"accuracy":0.5,"test_loss":0.1})"
                           "\n";
  const std::string owed = R"({"step":5,"accuracy":0.5,"test_loss":0.1})"
                           "\n";
  tests::put_bytes(path, step_lines({4}) + test + step_lines({5}) + owed);
  { const engine::MetricsFile file(path, 5); }
  CHECK(tests::bytes_of(path).ends_with(owed));
  { const engine::MetricsFile file(path, 5, true); }
  CHECK(tests::bytes_of(path) == step_lines({4}) + test + step_lines({5}));
}

TEST_CASE("the best of the tests up to a step is the first of equal ones") {
  const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  tests::put_bytes(path,
                   R"({"step":2,"accuracy":0.5,"test_loss":0.3})"
                   "\n"
                   R"({"step":4,"accuracy":0.6,"test_loss":0.3})"
                   "\n"
                   R"({"step":6,"accuracy":0.6,"test_loss":0.3})"
                   "\n"
                   R"({"step":8,"accuracy":0.6,"test_loss":0.2})"
                   "\n");
  const auto best = [&](Index step) {
    const auto found = engine::best_evaluation(path, {"accuracy"}, step);
    return found ? found->step : 0;
  };
  CHECK(best(1) == 0);
  CHECK(best(3) == 2);
  CHECK(best(7) == 4);
  CHECK(best(8) == 8);
}

TEST_CASE("a run that goes on knows what it has said of energy, and when it did its last step") {
  const tests::TemporaryFolder folder;
  const std::string tested = R"({"step":2,"test_loss":0.5,"t_s":3,"energy_j":9,"run_energy_j":9,)"
                             R"("run_energy_by_rank_j":[5,null,4]})"
                             "\n";
  tests::put_bytes(folder / "metrics.jsonl",
                   R"({"step":1,"loss":7.5,"t_s":1,"energy_j":3})"
                   "\n"
                   R"({"step":2,"loss":0.5,"t_s":2,"energy_j":4})"
                   "\n" +
                       tested +
                       R"({"step":3,"loss":0.5,"t_s":4,"energy_j":6})"
                       "\n"
                       R"({"step":4,"loss":0.5,"t_s":8,"energy_j":6})"
                       "\n");
  CHECK(engine::first_loss(folder / "metrics.jsonl") == 7.5);
  CHECK_FALSE(engine::first_loss(folder / "none"));
  const engine::MetricsFile file(folder / "metrics.jsonl", 3);
  CHECK(file.kept_until_s() == 4);
  CHECK(file.stepped_until_s() == 8);  // step 4 is done again
  CHECK(file.stepped_energy().total_j == 13);
  CHECK(file.tested_energy().total_j == 9);
  CHECK(file.tested_energy().of_rank_j == std::vector<std::optional<double>>{5, std::nullopt, 4});
  CHECK(file.said_j() == 13);
}
