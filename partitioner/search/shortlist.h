// For a search among many devices: the choices that can be part of a partition worth finding, found
// by what a few of the ranks take. What these compute, send and receive is at most what all wait
// for, so a choice that is too expensive for them is too expensive.

#pragma once

#include <memory>

#include "partitioner/search/group_choices.h"
#include "partitioner/search/partition_figures.h"
#include "partitioner/search/partition_search.h"

namespace tessera::partitioner {

class Shortlists {
 public:
  // All must outlive it.
  Shortlists(const Network& network,
             const ClusterProfile& cluster,
             const SearchOptions& options,
             PartitionFigures& figures);

  // Every choice, where there are so few devices that partitions which are almost as fast as the
  // fastest count as well, and for objectives of energy.
  [[nodiscard]] bool have_all() const { return rough_ == nullptr; }

  // The choices of all partitions that take at most so many times as long as the fastest.
  [[nodiscard]] ChoiceScope within(double factor);

 private:
  std::unique_ptr<PartitionSearch> rough_;
  double least_s_ = kInfiniteRate;  // of a partition that is known
};

}  // namespace tessera::partitioner
