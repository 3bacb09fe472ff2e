// Whether `tessera choose` chooses well where the truth is known: random clusters, whose sets take
// what random_clusters.h says, and trials that are off by a noise of their own.
//
// What decides is partitioner::DeviceTrials, which is told what trials show, as in `choose`.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <string>

#include "bench/choice/random_clusters.h"

#include "engine/base/in_threads.h"
#include "partitioner/base/errors.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/search/device_trials.h"

using namespace tessera;         // NOLINT(google-build-using-namespace): a program of this project
using namespace tessera::bench;  // NOLINT(google-build-using-namespace): the same

namespace {

using partitioner::DeviceTrials;
using partitioner::Objective;

constexpr double kRun_s = 3600;
// Standard deviation of the logarithm of the step that one trial shows; of power half of it.
constexpr std::array kNoises = {0.02, 0.05, 0.1};
constexpr std::array kObjectives = {
    Objective::Time, Objective::Power, Objective::Energy, Objective::EnergyDelay};

struct Case {
  std::size_t error = 0;
  std::size_t noise = 0;
  std::size_t objective = 0;
};

struct Outcome {
  double excess = 0;       // of what was chosen over the best
  double trial_share = 0;  // of an hour, until the choice
  double lost_share = 0;   // of an hour, that the steps of trials take longer than by the choice
  int trials = 0;
  int tried = 0;
};

double value(Objective objective, const TrueSet& set) {
  return objective_value(objective, set.step_s, set.step_s * set.power_w);
}

// Training for an hour, by the fastest set, of which the trials are a part.
Outcome choose(const SimulatedCluster& cluster, const Case& of, Draw draw) {
  const Objective objective = kObjectives.at(of.objective);
  const double noise = kNoises.at(of.noise);
  std::vector<partitioner::PredictedSet> predicted;
  double least_step_s = partitioner::kInfiniteRate;
  double least = partitioner::kInfiniteRate;
  for (const SimulatedSet& set : cluster.sets) {
    predicted.push_back({.devices = set.devices,
                         .step_s = set.step_s,
                         .power_w = set.power_w,
                         .power_error = kPowerError});
    least_step_s = std::min(least_step_s, set.truth.at(of.error).step_s);
    least = std::min(least, value(objective, set.truth.at(of.error)));
  }
  DeviceTrials trials(std::move(predicted),
                      {.objective = objective, .steps = std::ceil(kRun_s / least_step_s)});
  Outcome outcome;
  double steps = 0;
  double spent_s = 0;
  std::vector<bool> tried(cluster.sets.size());
  std::optional<std::size_t> last;
  while (const auto next = trials.next()) {
    const TrueSet& truth = cluster.sets[*next].truth.at(of.error);
    const double step_s = truth.step_s * std::exp(noise * draw.normal());
    const double power_w = truth.power_w * std::exp(noise / 2 * draw.normal());
    const Index count = trials.steps_of(*next);
    const double changing_s = next == last ? 0 : step_s + cluster.parameters_s;
    const double took_s = changing_s + static_cast<double>(count) * step_s;
    trials.add(
        *next,
        {count, {step_s, 0.01 * step_s}, partitioner::Estimate{power_w, 0.01 * power_w}, took_s});
    steps += static_cast<double>(count);
    spent_s += took_s;
    ++outcome.trials;
    outcome.tried += tried[*next] ? 0 : 1;
    tried[*next] = true;
    last = next;
  }
  const TrueSet& chosen = cluster.sets[trials.chosen().value()].truth.at(of.error);
  outcome.excess = value(objective, chosen) / least - 1;
  outcome.trial_share = spent_s / kRun_s;
  outcome.lost_share = (spent_s - steps * chosen.step_s) / kRun_s;
  return outcome;
}

// A row of the CSV, of the outcomes of all clusters.
std::string row(const Case& of, const std::vector<Outcome>& outcomes, double sets) {
  constexpr double kSame = 1e-9;
  constexpr double kNearly = 0.01;
  Outcome sum;
  double most = 0;
  double most_share = 0;
  int best = 0;
  int nearly = 0;
  for (const Outcome& outcome : outcomes) {
    best += outcome.excess <= kSame ? 1 : 0;
    nearly += outcome.excess <= kNearly ? 1 : 0;
    most = std::max(most, outcome.excess);
    most_share = std::max(most_share, outcome.trial_share);
    sum.excess += outcome.excess;
    sum.trial_share += outcome.trial_share;
    sum.lost_share += outcome.lost_share;
    sum.trials += outcome.trials;
    sum.tried += outcome.tried;
  }
  const auto count = static_cast<double>(outcomes.size());
  return fmt::format("{},{},{},{},{},{},{:.6f},{:.5f},{:.6f},{:.5f},{:.6f},{:.3f},{:.3f},{:.3f}\n",
                     kErrors.at(of.error),
                     kNoises.at(of.noise),
                     name_of(kObjectives.at(of.objective)),
                     outcomes.size(),
                     best,
                     nearly,
                     sum.excess / count,
                     most,
                     sum.trial_share / count,
                     most_share,
                     sum.lost_share / count,
                     sum.trials / count,
                     sum.tried / count,
                     sets);
}

// From a file that has them, else made and kept in it.
std::vector<SimulatedCluster> clusters_of(const std::string& path,
                                          const std::string& model,
                                          std::uint64_t seed,
                                          Index count) {
  if (!path.empty() && std::filesystem::exists(path)) {
    return read_clusters(path);
  }
  const partitioner::Network network = partitioner::read_model(model).network;
  std::vector<SimulatedCluster> clusters(static_cast<std::size_t>(count));
  engine::for_each_in_threads(
      count,
      [&](Index number) {
        const auto at = static_cast<std::size_t>(number);
        clusters[at] = random_cluster(network, seed, at);
      },
      1);
  if (!path.empty()) {
    write_clusters(path, clusters);
  }
  return clusters;
}

void judge(const std::vector<SimulatedCluster>& clusters, std::uint64_t seed) {
  std::vector<Case> cases;
  for (std::size_t error = 0; error < kErrors.size(); ++error) {
    for (std::size_t noise = 0; noise < kNoises.size(); ++noise) {
      for (std::size_t objective = 0; objective < kObjectives.size(); ++objective) {
        cases.push_back({error, noise, objective});
      }
    }
  }
  std::vector outcomes(cases.size(), std::vector<Outcome>(clusters.size()));
  engine::for_each_in_threads(
      std::ssize(clusters),
      [&](Index number) {
        const auto at = static_cast<std::size_t>(number);
        for (std::size_t i = 0; i < cases.size(); ++i) {
          outcomes[i][at] = choose(clusters[at], cases[i], Draw(seed, at, i + 1));
        }
      },
      1);
  double sets = 0;
  for (const SimulatedCluster& cluster : clusters) {
    sets += static_cast<double>(cluster.sets.size()) / static_cast<double>(clusters.size());
  }
  fmt::print(
      "error,noise,objective,cases,best,within,excess,most_excess,trial_share,"
      "most_trial_share,lost_share,trials,tried,sets\n");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    fmt::print("{}", row(cases[i], outcomes[i], sets));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Index clusters = 1000;
  std::uint64_t seed = 1;
  std::string model = "models/small-vgg.cfg";
  std::string sets;
  CLI::App app(
      "Whether `tessera choose` chooses well on random clusters: a CSV of how much worse than the "
      "best set its choices are, and how much of an hour they take, over the error of predictions "
      "and the noise of trials");
  app.add_option("--clusters", clusters, "how many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "of clusters, errors and noise")->capture_default_str();
  app.add_option("--model", model, "that they train, 32 images a step")->capture_default_str();
  app.add_option("--sets",
                 sets,
                 "a file of the sets with what is predicted and what is true of each: read if it "
                 "exists, else written");
  CLI11_PARSE(app, argc, argv);
  try {
    judge(clusters_of(sets, model, seed, clusters), seed);
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
