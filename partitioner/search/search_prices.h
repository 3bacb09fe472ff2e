// What a search minimizes: the seconds of a step and the joules of its computing, each with a
// weight, plus a price of memory for each device's worth of it that is taken. So searches for the
// fastest partition, for one of little energy and for one of little memory are the same.

#pragma once

#include <algorithm>

#include "partitioner/search/group_choices.h"

namespace tessera::partitioner {

struct MemoryPrice {
  double seconds = 0;           // for all memory of a device
  double most = kInfiniteRate;  // about the share of it that may be taken at any time
};

// Prices of the energy that partitions take. Time * idle power is the part that all partitions of a
// cluster have in common: its weight says how many devices are meant.
struct EnergyPrice {
  double per_second = 1;
  double per_joule = 0;  // beyond idling
};

struct SearchPrices {
  MemoryPrice memory = {};
  // The share of what gradient reductions and gradients of maps take that costs nothing, since they
  // travel while ranks compute.
  double hidden = 0;
  EnergyPrice energy = {};

  // The price of a group in a step, without exchanges of maps.
  [[nodiscard]] double price(const GroupChoice& choice) const {
    return energy.per_second * (choice.seconds - hidden * choice.reduction_s) +
           energy.per_joule * choice.computing_j + memory.seconds * choice.load;
  }
};

// About the share of its memory that the device that uses the most takes.
struct MemoryLoad {
  double fixed = 0;  // throughout a step
  double kept = 0;   // from forward to backward pass
  double peak = 0;   // beside what is fixed, in the backward pass of some group

  [[nodiscard]] double total() const { return fixed + peak; }

  // With a further group. In its backward pass all is there that earlier groups and itself keep,
  // and what it takes for a moment; `reads` is what it takes to get the maps that it reads.
  [[nodiscard]] MemoryLoad with(const GroupChoice& choice, double reads) const {
    MemoryLoad sum = *this;
    sum.fixed += choice.fixed;
    sum.kept += choice.load - choice.fixed + reads;
    sum.peak = std::max(sum.peak, sum.kept + choice.for_a_moment);
    return sum;
  }
};

}  // namespace tessera::partitioner
