#include "partitioner/search/device_trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;

PredictedSet predicted(std::vector<int> devices, double step_s, double power_w) {
  PredictedSet set;
  set.devices = std::move(devices);
  set.step_s = step_s;
  set.power_w = power_w;
  return set;
}

TriedSet tried(double step_s, double power_w) {
  return {3, {step_s, 0.01 * step_s}, Estimate{power_w, 0.01 * power_w}};
}

// Tries what it is told to until nothing is left, with what is true of each set. Changing over to
// it takes as long as so many of its steps.
std::vector<std::size_t> run(DeviceTrials& trials,
                             const std::vector<PredictedSet>& truth,
                             double preparing_steps = 1) {
  std::vector<std::size_t> order;
  while (const auto set = trials.next()) {
    TriedSet result = tried(truth[*set].step_s, *truth[*set].power_w);
    result.steps = trials.steps_of(*set);
    result.took_s = (static_cast<double>(result.steps) + preparing_steps) * result.step_s.value;
    trials.add(*set, result);
    order.push_back(*set);
  }
  return order;
}

// The same, but sets that are tried again.
std::vector<std::size_t> run_once(DeviceTrials& trials, const std::vector<PredictedSet>& truth) {
  std::vector<std::size_t> first;
  for (const std::size_t set : run(trials, truth)) {
    if (std::find(first.begin(), first.end(), set) == first.end()) {
      first.push_back(set);
    }
  }
  return first;
}

double value(const PredictedSet& set, Objective objective) {
  return objective_value(objective, set.step_s, set.step_s * *set.power_w);
}

TEST_CASE("the most promising set is tried first, and far worse ones not at all") {
  const std::vector<PredictedSet> sets = {predicted({0}, 2.0, 3),
                                          predicted({0, 1}, 1.0, 6),
                                          predicted({0, 1, 2}, 1.04, 9),
                                          predicted({0, 1, 2, 3}, 5.0, 12)};
  DeviceTrials trials(sets, {.steps = 10000});
  CHECK(run_once(trials, sets) == std::vector<std::size_t>{1, 2});
  CHECK(trials.chosen() == 1);
  const auto ranking = trials.ranking();
  CHECK(ranking.front().set == 1);
  CHECK(ranking.front().pruned.empty());
  CHECK(ranking.back().set == 3);
  CHECK(ranking.back().pruned.find("predicted 5.00 times the time") != std::string::npos);
}

TEST_CASE("what was measured counts, not what was predicted") {
  const std::vector<PredictedSet> sets = {predicted({0, 1}, 1.0, 6), predicted({0, 1, 2}, 1.05, 9)};
  DeviceTrials trials(sets, {.steps = 10000});
  CHECK(run_once(trials, {predicted({0, 1}, 1.1, 6), predicted({0, 1, 2}, 1.0, 9)}).size() == 2);
  CHECK(trials.chosen() == 1);
  CHECK(trials.ranking().front().time_s.value == doctest::Approx(10000).epsilon(0.02));
}

TEST_CASE("that all predictions are too low by the same factor rules out no less") {
  const std::vector<PredictedSet> sets = {
      predicted({0, 1}, 1.0, 6), predicted({0, 1, 2}, 1.02, 9), predicted({0, 1, 2, 3}, 4, 12)};
  DeviceTrials trials(sets, {.steps = 10000});
  std::vector<PredictedSet> slow = sets;
  for (PredictedSet& set : slow) {
    set.step_s *= 1.5;
  }
  CHECK(run_once(trials, slow) == std::vector<std::size_t>{0, 1});
  CHECK(trials.ranking().back().time_s.value == doctest::Approx(10000 * 4 * 1.5).epsilon(0.02));
}

// One device sends nothing: that several are slower than predicted does not say that it is.
TEST_CASE("one device is not ruled out by how wrong predictions of several are") {
  const std::vector<PredictedSet> sets = {predicted({0, 1}, 1.0, 6), predicted({0}, 1.2, 3)};
  DeviceTrials trials(sets, {.steps = 100000});
  CHECK(run_once(trials, {predicted({0, 1}, 1.4, 6), predicted({0}, 1.2, 3)}).size() == 2);
  CHECK(trials.chosen() == 1);
}

// As where a profile is wrong about one of several devices.
TEST_CASE("a set is not ruled out by how wrong the prediction of a single other one is") {
  const std::vector<PredictedSet> sets = {
      predicted({0}, 1.0, 4), predicted({1}, 1.24, 4), predicted({2}, 1.9, 4)};
  DeviceTrials trials(sets, {.steps = 100000});
  const auto order =
      run_once(trials, {predicted({0}, 1.74, 4), predicted({1}, 1.24, 4), predicted({2}, 1.9, 4)});
  REQUIRE(order.size() >= 2);
  CHECK(order[0] == 0);
  CHECK(order[1] == 1);
  CHECK(trials.chosen() == 1);
}

TEST_CASE("trials take a twentieth of the run, but for two") {
  std::vector<PredictedSet> sets;
  for (int i = 0; i < 20; ++i) {
    sets.push_back(predicted({i, i + 1}, 1 + 1e-4 * i, 5));
  }
  const Index steps = 1000;
  for (const double preparing_steps : {1.0, 4.0}) {  // changing over counts, too
    DeviceTrials trials(sets, {.steps = static_cast<double>(steps)});
    run(trials, sets, preparing_steps);
    double spent = 0;
    for (const SetOutlook& of : trials.ranking()) {
      spent += of.tried ? of.tried->took_s : 0;
    }
    CHECK(spent <= 0.05 * steps);
    CHECK(spent > 0.03 * steps);
    const std::vector<SetOutlook> all = trials.ranking();
    CHECK(std::any_of(all.begin(), all.end(), [](const SetOutlook& of) {
      return of.pruned == "there is no time for another trial";
    }));
  }
  DeviceTrials short_run(sets, {.steps = 20});
  CHECK(run(short_run, sets).size() == 2);
  DeviceTrials shortest(sets, {.steps = 3});
  CHECK(run(shortest, sets).size() <= 1);
  CHECK(shortest.chosen() == 0);
}

TEST_CASE("what is nearly as good as the best is tried again, in turn") {
  const std::vector<PredictedSet> sets = {predicted({0, 1}, 1.0, 6),
                                          predicted({0, 1, 2}, 1.02, 9),
                                          predicted({0, 1, 2, 3}, 1.1, 12),
                                          predicted({0}, 1.5, 3)};
  DeviceTrials trials(sets, {.steps = 100000});
  // The first trial of set 0 is too good.
  std::vector<std::size_t> order;
  while (const auto set = trials.next()) {
    const double factor = order.empty() ? 0.9 : 1.0;
    TriedSet result = tried(factor * (*set == 0 ? 1.06 : sets[*set].step_s), *sets[*set].power_w);
    result.steps = trials.steps_of(*set);
    trials.add(*set, result);
    order.push_back(*set);
  }
  CHECK(order[0] == 0);
  CHECK(order[1] == 1);
  CHECK(std::count(order.begin(), order.end(), 0) >= 4);
  CHECK(std::count(order.begin(), order.end(), 1) >= 4);
  CHECK(std::count(order.begin(), order.end(), 3) <= 1);
  for (std::size_t i = 1; i < order.size(); ++i) {
    CHECK(order[i] != order[i - 1]);
  }
  CHECK(trials.chosen() == 1);
  // Boards of a kind have the same power: soon there is no more to learn.
  const std::vector<PredictedSet> boards = {predicted({0}, 1.0, 3),
                                            predicted({1}, 1.0, 3),
                                            predicted({2}, 1.1, 3),
                                            predicted({0, 1}, 0.6, 6)};
  DeviceTrials by_power(boards, {.objective = Objective::Power, .steps = 100000});
  CHECK(run(by_power, boards).size() <= 12);
}

TEST_CASE("what several trials of a set showed is put together, and their difference widens it") {
  DeviceTrials trials({predicted({0}, 2, 3)}, {.steps = 1});
  trials.add(0, {4, {2.0, 0.0}, Estimate{3, 0.0}});   // three that count
  trials.add(0, {10, {2.4, 0.0}, Estimate{5, 0.0}});  // nine
  const SetOutlook of = trials.ranking().front();
  CHECK(of.tried->steps == 14);
  CHECK(of.tried->step_s.value == doctest::Approx(2.3));  // by their steps
  CHECK(of.tried->power_w->value == doctest::Approx(4.5));
  CHECK(of.time_s.value > 2.05);
  CHECK(of.time_s.value < 2.3);
  DeviceTrials agreeing({predicted({0}, 2, 3)}, {.steps = 1});
  agreeing.add(0, {4, {2.2, 0.0}, {}});
  agreeing.add(0, {10, {2.2, 0.0}, {}});
  CHECK(of.time_s.error > 1.2 * agreeing.ranking().front().time_s.error);
}

// Speeds that change between trials, more than sets differ.
TEST_CASE("trying again finds the better of two where single trials mislead") {
  int right = 0;
  int right_at_first = 0;
  constexpr int kCases = 400;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Draw draw(seed);
    const std::vector<PredictedSet> sets = {predicted({0, 1}, 1.0, 6),
                                            predicted({0, 1, 2}, 0.96, 9)};
    DeviceTrials trials(sets, {.steps = 100000});
    int count = 0;
    while (const auto set = trials.next()) {
      const double off = 1 + 0.01 * static_cast<double>(draw.between(-8, 8));
      TriedSet result = tried(sets[*set].step_s * off, 6);
      result.steps = trials.steps_of(*set);
      trials.add(*set, result);
      right_at_first += ++count == 2 && trials.chosen() == 1 ? 1 : 0;
    }
    right += trials.chosen() == 1 ? 1 : 0;
  }
  CHECK(right > right_at_first + kCases / 20);
  CHECK(right > 0.85 * kCases);
}

TEST_CASE("short steps are tried for longer, the first one not counted") {
  const std::vector<PredictedSet> sets = {predicted({0}, 0.1, 3), predicted({1}, 5, 3)};
  const DeviceTrials trials(sets, {.steps = 100000, .least_trial_s = 2});
  CHECK(trials.steps_of(0) == 21);
  CHECK(trials.steps_of(1) == 2);
}

TEST_CASE("sets beyond a deadline or a limit of power are not chosen") {
  const std::vector<PredictedSet> sets = {
      predicted({0}, 4.0, 3), predicted({0, 1}, 2.0, 6), predicted({0, 1, 2, 3}, 1.0, 12)};
  TrialOptions options{.objective = Objective::Energy, .steps = 1000, .deadline_s = 2500};
  DeviceTrials late(sets, options);
  CHECK(run(late, sets).front() != 0);  // one device would take 4000 s
  CHECK(late.chosen() == 1);
  CHECK(late.ranking().back().set == 0);
  CHECK(late.ranking().back().pruned.find("deadline") != std::string::npos);

  options = {.objective = Objective::Time, .steps = 1000, .power_limit_w = 7};
  DeviceTrials strong(sets, options);
  run(strong, sets);
  CHECK(strong.chosen() == 1);

  options = {.objective = Objective::Time, .steps = 1000, .deadline_s = 500};
  DeviceTrials none(sets, options);
  CHECK(run(none, sets).empty());
  CHECK(!none.chosen());
  CHECK(none.ranking().front().set == 2);  // it comes closest
}

TEST_CASE("before anything was measured, a set is not refused that may keep the limits") {
  const std::vector<PredictedSet> sets = {predicted({0, 1}, 1.0, 6)};
  DeviceTrials late(sets, {.steps = 1000, .deadline_s = 800});
  CHECK(!late.chosen());
  CHECK(run(late, {predicted({0, 1}, 0.75, 6)}) == std::vector<std::size_t>{0});
  CHECK(late.chosen() == 0);
  const DeviceTrials too_late(sets, {.steps = 1000, .deadline_s = 600});
  CHECK(!too_late.next());

  std::vector<PredictedSet> by_table = sets;
  by_table[0].power_error = 0.25;
  DeviceTrials strong(by_table, {.steps = 1000, .power_limit_w = 5});
  CHECK(run(strong, {predicted({0, 1}, 1.0, 4.8)}) == std::vector<std::size_t>{0});
  CHECK(strong.chosen() == 0);
  const DeviceTrials too_strong(sets, {.steps = 1000, .power_limit_w = 5});
  CHECK(!too_strong.next());
}

TEST_CASE("what was measured corrects what is held against limits") {
  const std::vector<PredictedSet> sets = {predicted({0, 1}, 0.7, 6), predicted({0, 1, 2}, 1.4, 2)};
  const TrialOptions options{.objective = Objective::Energy, .steps = 1000, .deadline_s = 1020};
  DeviceTrials slower(sets, options);
  CHECK(run_once(slower, {predicted({0, 1}, 0.9, 6), predicted({0, 1, 2}, 1.8, 2)}) ==
        std::vector<std::size_t>{0});
  DeviceTrials faster(sets, options);
  CHECK(run_once(faster, {predicted({0, 1}, 0.5, 6), predicted({0, 1, 2}, 1.0, 2)}).size() == 2);
  CHECK(faster.chosen() == 1);
}

TEST_CASE("a set that keeps the deadline only by prediction is not chosen once it was tried") {
  const std::vector<PredictedSet> sets = {predicted({0, 1}, 1.0, 6), predicted({0, 1, 2}, 0.95, 9)};
  DeviceTrials trials(sets, {.objective = Objective::Energy, .steps = 1000, .deadline_s = 1020});
  run(trials, {predicted({0, 1}, 1.1, 6), predicted({0, 1, 2}, 0.97, 9)});
  CHECK(trials.chosen() == 1);
  CHECK(trials.ranking().back().tried);
  CHECK(!trials.ranking().back().pruned.empty());
}

TEST_CASE("all sets are tried where that is asked for") {
  const std::vector<PredictedSet> sets = {
      predicted({0}, 1.0, 3), predicted({0, 1}, 9.0, 6), predicted({0, 1, 2}, 5.0, 9)};
  DeviceTrials trials(sets, {.steps = 1000, .deadline_s = 2000, .all = true});
  CHECK(run(trials, sets).size() == 3);
  CHECK(trials.chosen() == 0);
}

TEST_CASE("what cannot be chosen is neither tried nor chosen") {
  std::vector<PredictedSet> sets = {predicted({0}, 1, 3), predicted({0, 1}, 0.1, 6)};
  sets[1].unfit = "does not fit";
  DeviceTrials trials(sets, {.steps = 1000});
  CHECK(run(trials, sets) == std::vector<std::size_t>{0});
  CHECK(trials.chosen() == 0);
  CHECK(trials.ranking().back().pruned == "does not fit");
}

TEST_CASE("uncertainty adds up: energy by time and power, the product by time twice") {
  DeviceTrials trials({predicted({0}, 2, 3)}, {.objective = Objective::Energy, .steps = 100});
  trials.add(0, {5, {2, 0.2}, Estimate{3, 0.15}});
  const SetOutlook of = trials.ranking().front();
  CHECK(of.time_s.value == doctest::Approx(200));
  CHECK(of.time_s.error > 20);  // the trial's own, and how trials vary
  CHECK(of.time_s.error < 30);
  CHECK(of.power_w->error > 0.15);
  CHECK(of.power_w->error < 0.25);
  const double time = of.time_s.error / of.time_s.value;
  const double power = of.power_w->error / of.power_w->value;
  REQUIRE(of.energy_j);
  CHECK(of.energy_j->value == doctest::Approx(600));
  CHECK(of.energy_j->error == doctest::Approx(600 * std::hypot(time, power)));
  CHECK(of.energy_delay_js->value == doctest::Approx(120000));
  CHECK(of.energy_delay_js->error == doctest::Approx(120000 * std::hypot(2 * time, power)));
}

TEST_CASE("a set that is predicted too well is found out") {
  const std::vector<PredictedSet> sets = {predicted({0, 1, 2}, 1.0, 9),
                                          predicted({0, 1}, 1.3, 6),
                                          predicted({0}, 2.2, 3),
                                          predicted({1}, 2.2, 3)};
  DeviceTrials trials(sets, {.steps = 3600});
  std::vector<PredictedSet> truth = sets;
  truth[0].step_s = 2;
  CHECK(run(trials, truth).front() == 0);
  CHECK(trials.chosen() == 1);
}

TEST_CASE("where predictions are right and clear, one or two trials are enough") {
  const std::vector<PredictedSet> sets = {
      predicted({0}, 4, 3), predicted({0, 1}, 2.1, 6), predicted({0, 1, 2}, 0.5, 9)};
  for (const Objective objective : {Objective::Time, Objective::Energy, Objective::EnergyDelay}) {
    CAPTURE(name_of(objective));
    DeviceTrials trials(sets, {.objective = objective, .steps = 3600});
    CHECK(run(trials, sets).size() <= 2);
    CHECK(trials.chosen() == 2);
  }
}

TEST_CASE("of equal sets the first is tried first, and the same is tried in each run") {
  const std::vector<PredictedSet> sets = {
      predicted({0, 1}, 1, 6), predicted({1, 2}, 1, 6), predicted({0, 2}, 1, 6)};
  DeviceTrials trials(sets, {.steps = 3600});
  DeviceTrials once_more(sets, {.steps = 3600});
  const std::vector<std::size_t> order = run(trials, sets);
  CHECK(order.front() == 0);
  CHECK(order == run(once_more, sets));
  CHECK(trials.chosen() == once_more.chosen());
}

// Predictions off by what `error` allows, and a common factor.
TEST_CASE("where predictions are as good as they are said to be, the best or nearly so is chosen") {
  int best = 0;
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Draw draw(seed);
    std::vector<PredictedSet> sets;
    std::vector<PredictedSet> truth;
    const double factor = 0.01 * static_cast<double>(draw.between(80, 130));
    for (int i = 0; i < 15; ++i) {
      const int devices = 1 + i % 4;
      const double step_s = 0.1 * static_cast<double>(draw.between(10, 40));
      const double power_w = 3.0 * devices + 0.1 * static_cast<double>(draw.between(0, 10));
      const double off = 1 + 0.01 * static_cast<double>(draw.between(-4, 4));
      std::vector<int> members;
      for (int device = 0; device < devices; ++device) {
        members.push_back(i + device);
      }
      sets.push_back(predicted(members, step_s, power_w));
      truth.push_back(predicted(members, step_s * factor * off, power_w));
    }
    for (const Objective objective :
         {Objective::Time, Objective::Power, Objective::Energy, Objective::EnergyDelay}) {
      CAPTURE(seed);
      CAPTURE(name_of(objective));
      DeviceTrials trials(sets, {.objective = objective, .steps = 3600});
      run(trials, truth);
      double least = kInfiniteRate;
      for (const PredictedSet& set : truth) {
        least = std::min(least, value(set, objective));
      }
      const double chosen = value(truth[trials.chosen().value()], objective);
      CHECK(chosen <= 1.08 * least);
      best += chosen <= least * (1 + 1e-9) ? 1 : 0;
      ++cases;
    }
  }
  CHECK(best >= 0.95 * cases);
}

}  // namespace
