// Which sets of a cluster's devices there are to train on, and what is predicted for each by the
// best partition that a search finds for it.
//
// Devices with equal profiles and equal links stand for each other: of those, a set has the first
// few. Where there are too many sets all the same, the search begins with single devices, all of
// them, and the first 1, 2, 3, ... in the order of how fast, and how good, each is by itself. It
// goes on from the best sets with a device more or less, then with another one instead, until
// nothing near the best is left to go on from.

#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "partitioner/search/objective.h"
#include "partitioner/search/search.h"

namespace tessera::partitioner {

// Devices that may stand for each other, in the order of their first one; `alone`, where it is
// given, stands for itself.
[[nodiscard]] std::vector<std::vector<int>> device_kinds(const ClusterProfile& cluster,
                                                         std::optional<int> alone = std::nullopt);

// The best partition for the devices that are listed, in this order, by search_partition(). Those
// of the result are of all ranks of the cluster; memory is that of the devices, in their order. A
// reader that `options` names has to be among the devices.
[[nodiscard]] SearchResult search_devices(const Network& network,
                                          const ClusterProfile& cluster,
                                          const SearchOptions& options,
                                          const std::vector<int>& devices);

struct DeviceSet {
  std::vector<int> devices;        // in rising order
  std::optional<Candidate> found;  // of all ranks of the cluster; nothing where nothing fits

  friend bool operator<(const DeviceSet& a, const DeviceSet& b) { return a.devices < b.devices; }
};

// What is too much for a step.
struct StepLimits {
  double seconds = kInfiniteRate;
  double watts = kInfiniteRate;

  // By how much a step exceeds them, relative to the limit: 0 where it does not.
  [[nodiscard]] double excess(double step_s, double energy_j) const;
};

struct DeviceSetOptions {
  Objective objective = Objective::Time;
  StepLimits limits = {};
  std::optional<int> needed = std::nullopt;  // a device that is to be in each set
  double near = 1.25;                        // times the least: worth going on from
  std::size_t most = 64;                     // sets that are searched
};

// What a search finds for the devices of each set; the sets may be searched at the same time.
using FindPartitions =
    std::function<std::vector<std::optional<Candidate>>(const std::vector<std::vector<int>>& sets)>;

// One set after the other.
[[nodiscard]] FindPartitions one_by_one(
    std::function<std::optional<Candidate>(const std::vector<int>& devices)> find);

struct DeviceSetSearch {
  std::vector<DeviceSet> sets;  // that were searched: the best first, those that do not fit last
  double all = 0;               // how many there are; those that are alike count as one
};

// Objectives of energy and limits of power require that all powers are known.
[[nodiscard]] DeviceSetSearch search_device_sets(const ClusterProfile& cluster,
                                                 const DeviceSetOptions& options,
                                                 const FindPartitions& find);

}  // namespace tessera::partitioner
