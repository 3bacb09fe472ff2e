// Random clusters whose sets of devices have a predicted and a true step, to judge whoever chooses
// among them.
//
// A cluster has 2 to 12 devices of 1 to 3 kinds and equal links of 10 to 1000 Mbit/s. Each set has
// the partition that a search finds for it, and what is predicted for that partition by its
// simulated schedule. True is what the same schedule takes if each device computes faster or slower
// than its profile says, times an error of the set's own; and likewise its power.

#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "partitioner/network/network.h"

namespace tessera::bench {

// Numbers that are the same on every machine.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t substream = 0);
  [[nodiscard]] double uniform();  // from 0 to 1
  [[nodiscard]] double normal();
  [[nodiscard]] int between(int least, int most);           // both included
  [[nodiscard]] double between(double least, double most);  // of any order of magnitude

 private:
  std::mt19937_64 generator_;
};

// Spread of the true step of a single device around its prediction: standard deviation of its
// logarithm, half of its variance the device's and half the set's.
inline constexpr std::array kErrors = {0.1, 0.2, 0.4};

struct TrueSet {
  double step_s = 0;
  double power_w = 0;
};

struct SimulatedSet {
  std::vector<int> devices;
  double step_s = 0;  // as predicted
  double power_w = 0;
  std::array<TrueSet, kErrors.size()> truth = {};
};

struct SimulatedCluster {
  std::vector<SimulatedSet> sets;
  double parameters_s = 0;  // in which all parameters pass a link
};

// Of a device's power, which a profile knows no better; a standard deviation of its logarithm.
inline constexpr double kPowerError = 0.05;

// Images of a step of the network that the clusters train.
inline constexpr Index kBatch = 32;

[[nodiscard]] SimulatedCluster random_cluster(const partitioner::Network& network,
                                              std::uint64_t seed,
                                              std::uint64_t number);

// As text, in their order. Throws InputError where the file does not hold such clusters.
void write_clusters(const std::string& path, const std::vector<SimulatedCluster>& clusters);
[[nodiscard]] std::vector<SimulatedCluster> read_clusters(const std::string& path);

}  // namespace tessera::bench
