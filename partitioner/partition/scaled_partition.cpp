#include "partitioner/partition/scaled_partition.h"

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

void scale(Cut& cut, Index from, Index to) {
  if (cut.boundaries.empty() || from == to) {
    return;
  }
  const Cut equal{cut.parts, {}};
  if (cut.boundaries == cut_boundaries(equal, from)) {
    cut.boundaries = cut_boundaries(equal, to);
    return;
  }
  for (Index& boundary : cut.boundaries) {
    boundary = (2 * boundary * to + from) / (2 * from);
  }
}

}  // namespace

Partition scaled(Partition partition, const Network& from, const Network& to) {
  expects(from.size() == to.size(), "the networks have the same layers");
  for (Group& group : partition.groups) {
    const MapShape& before = from.layer(group.last).output;
    const MapShape& now = to.layer(group.last).output;
    scale(group.rows, before.rows, now.rows);
    scale(group.cols, before.cols, now.cols);
  }
  partition.network = fingerprint(to);
  return partition;
}

}  // namespace tessera::partitioner
