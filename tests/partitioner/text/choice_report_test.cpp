#include "partitioner/text/choice_report.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

Candidate some_candidate(double step_s) {
  Network network;
  network.image = {1, 8, 8};
  add_layer(network, Connected{.outputs = 4}, {kImage});
  Candidate candidate;
  candidate.partition = single_tile(network);
  candidate.modelled_s = step_s;
  candidate.energy = StepEnergy{.step_s = step_s, .energy_j = 3 * step_s};
  return candidate;
}

// Of three sets one was tried, one ruled out, and one does not fit.
ChoiceReport some_report() {
  ChoiceReport report;
  report.objective = Objective::Energy;
  report.devices = {"pi1", "pi\n2"};
  report.sets = {{{0}, some_candidate(2)}, {{0, 1}, some_candidate(5)}, {{1}, std::nullopt}};
  std::vector<PredictedSet> predicted(3);
  predicted[0] = {.devices = {0}, .step_s = 2, .power_w = 3.0};
  predicted[1] = {.devices = {0, 1}, .step_s = 5, .power_w = 6.0};
  predicted[2] = {.devices = {1}, .unfit = "does not fit"};
  DeviceTrials trials(predicted, {.objective = Objective::Energy, .steps = 100});
  trials.add(0, {4, {2.5, 0.1}, Estimate{3.5, 0.2}});
  report.ranking = trials.ranking();
  report.chosen = trials.chosen();
  report.steps = trials.steps();
  report.tried = true;
  return report;
}

TEST_CASE("choice.json has all keys of each candidate, null where nothing is known") {
  const auto json = nlohmann::json::parse(choice_json(some_report()));
  CHECK(json.at("objective") == "energy");
  CHECK(json.at("chosen") == 0);
  REQUIRE(json.at("candidates").size() == 3);
  for (const auto& candidate : json.at("candidates")) {
    CHECK(candidate.size() == 10);
    for (const char* key : {"devices",
                            "partition",
                            "predicted_step_s",
                            "measured_step_s",
                            "time_s",
                            "power_w",
                            "energy_j",
                            "edp_js",
                            "tried_steps",
                            "pruned"}) {
      CHECK(candidate.contains(key));
    }
  }
  const auto& chosen = json.at("candidates").at(0);
  CHECK(chosen.at("devices") == std::vector<std::string>{"pi1"});
  CHECK(chosen.at("predicted_step_s") == 2);
  CHECK(chosen.at("measured_step_s") == 2.5);
  // What a trial showed, and a little of what was predicted.
  const double time_s = chosen.at("time_s").get<double>();
  const double power_w = chosen.at("power_w").get<double>();
  CHECK(time_s == doctest::Approx(250).epsilon(0.02));
  CHECK(power_w == doctest::Approx(3.5).epsilon(0.02));
  CHECK(chosen.at("energy_j").get<double>() == doctest::Approx(power_w * time_s));
  CHECK(chosen.at("edp_js").get<double>() == doctest::Approx(power_w * time_s * time_s));
  CHECK(chosen.at("tried_steps") == 4);
  CHECK(chosen.at("pruned").is_null());
  const double uncertain_s = json.at("uncertainty").at(0).at("time_s").get<double>();
  CHECK(uncertain_s > 10);  // the error of the trial, and how trials vary
  CHECK(uncertain_s < 30);
  const auto& other = json.at("candidates").at(1);
  CHECK(other.at("measured_step_s").is_null());
  CHECK(other.at("tried_steps") == 0);
  CHECK(other.at("pruned").get<std::string>().find("predicted") == 0);
  const auto& unfit = json.at("candidates").at(2);
  CHECK(unfit.at("partition").is_null());
  CHECK(unfit.at("time_s").is_null());
  CHECK(unfit.at("pruned") == "does not fit");
}

TEST_CASE("an earlier choice is read back where it was one by trials") {
  ChoiceReport report = some_report();
  const auto earlier = earlier_choice(choice_json(report));
  REQUIRE(earlier);
  CHECK(earlier->devices == std::vector<std::string>{"pi1"});
  CHECK(parse_partition(earlier->partition, "it") == report.sets[0].found->partition);
  CHECK(earlier->objective == "energy");
  CHECK(!earlier->deadline_s);
  report.deadline_s = 300;
  report.power_limit_w = 7.5;
  CHECK(earlier_choice(choice_json(report))->deadline_s == 300.0);
  CHECK(earlier_choice(choice_json(report))->power_limit_w == 7.5);
  report.tried = false;
  CHECK(!earlier_choice(choice_json(report)));
  report.tried = true;
  report.chosen.reset();
  CHECK(!earlier_choice(choice_json(report)));
  for (const char* text : {"", "[]", "{}", "{\"tried\":true,\"chosen\":3,\"candidates\":[]}"}) {
    CHECK(!earlier_choice(text));
  }
}

TEST_CASE("the table marks the chosen set, and no line is wider than 120") {
  const std::string text = choice_table(some_report());
  std::istringstream lines(text);
  int marked = 0;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 120);
    marked += line.rfind("*  pi1 ", 0) == 0 ? 1 : 0;
  }
  CHECK(marked == 1);
  CHECK(choice_line(some_report()) == "pi1 for least energy: 863 J +-11 % for the run, by trials");
}

}  // namespace
