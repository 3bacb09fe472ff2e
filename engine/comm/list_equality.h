// Long lists that all ranks should have alike, such as the pictures of a data set, compared with
// little traffic: digests of all, then digests of parts, then the entries of the first part that
// differs.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/comm/communicator.h"

namespace tessera::engine {

struct ListDifference {
  int rank = 0;  // the lowest one whose list is not that of rank 0
  std::string host;
  std::string first_host;  // of rank 0
  Index place = 0;         // the first place at which the two differ
  // What follows from there in both lists, as far as it was looked at; empty: its list ends there.
  std::vector<std::string> entries;
  std::vector<std::string> first_entries;
};

// Nothing where all ranks have the same `count` entries in the same order. All ranks call this
// together, and all get the same answer. `entry` is called for some items more than once.
[[nodiscard]] std::optional<ListDifference> list_difference(
    Index count, const std::function<std::string(Index)>& entry, const Communicator& communicator);

}  // namespace tessera::engine
