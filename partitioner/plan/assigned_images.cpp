#include "partitioner/plan/assigned_images.h"

#include <algorithm>

#include "partitioner/network/losses.h"

namespace tessera::partitioner {

namespace {

// The ranks that own most of an image, rising.
std::vector<int> first_owners(const Network& network,
                              const Plan& plan,
                              const std::vector<int>& heads,
                              Index image) {
  std::vector<Index> cells(static_cast<std::size_t>(plan.ranks));
  for (const int layer : heads) {
    const auto& head = std::get<YoloxHead>(network.layer(layer).operation);
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Region& owned = plan.tile(layer, rank).owned;
      if (!owned.empty() && owned.images.begin <= image && image < owned.images.end) {
        cells[static_cast<std::size_t>(rank)] +=
            std::min(owned.rows.size() * owned.cols.size(), kCandidatesOfObject * head.most_boxes);
      }
    }
  }
  const Index most = *std::max_element(cells.begin(), cells.end());
  std::vector<int> owners;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (cells[static_cast<std::size_t>(rank)] == most) {
      owners.push_back(rank);
    }
  }
  return owners;
}

}  // namespace

std::vector<AssignedImages> assigned_images(const Network& network, const Plan& plan) {
  const std::vector<int> heads = assigned_heads(network);
  std::vector<AssignedImages> assigned;
  for (Index begin = 0, end = 0; begin < plan.batch && !heads.empty(); begin = end) {
    const std::vector<int> owners = first_owners(network, plan, heads, begin);
    end = begin + 1;
    while (end < plan.batch && first_owners(network, plan, heads, end) == owners) {
      ++end;
    }
    const auto parts = std::ssize(owners);
    for (Index part = 0; part < parts; ++part) {
      const Range images{begin + (end - begin) * part / parts,
                         begin + (end - begin) * (part + 1) / parts};
      if (!images.empty()) {
        assigned.push_back({owners[static_cast<std::size_t>(part)], images});
      }
    }
  }
  return assigned;
}

}  // namespace tessera::partitioner
