#include "engine/moving/move_lists.h"

#include <algorithm>
#include <fmt/format.h>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

using partitioner::DataMap;
using partitioner::MappedSamples;

namespace {

// The items that a move counts: all, or those of its class.
class CountedItems {
 public:
  CountedItems(const Dataset& dataset, int rank, std::string map)
      : dataset_(dataset), rank_(rank), map_(std::move(map)) {}

  void add(const MappedSamples& move, std::vector<Index>& items) {
    if (move.of_class.empty()) {
      for (Index item = move.begin; item < move.end; ++item) {
        items.push_back(item);
      }
      return;
    }
    const std::vector<Index>& of_class = items_of(move.of_class);
    if (move.end > std::ssize(of_class)) {
      throw InputError(
          map_,
          0,
          fmt::format(
              "samples {} to {} of class {} move from device {}, whose data set has {} of it",
              move.begin,
              move.end - 1,
              printable_start(move.of_class),
              rank_,
              of_class.size()));
    }
    items.insert(items.end(), of_class.data() + move.begin, of_class.data() + move.end);
  }

 private:
  const std::vector<Index>& items_of(const std::string& name) {
    if (by_class_.empty()) {
      by_class_.resize(dataset_.class_names().size());
      for (Index item = 0; item < dataset_.size(); ++item) {
        by_class_[static_cast<std::size_t>(dataset_.label(item))].push_back(item);
      }
    }
    const auto& names = dataset_.class_names();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw InputError(map_, 0, fmt::format("there is no class {}", printable_start(name)));
    }
    return by_class_[static_cast<std::size_t>(found - names.begin())];
  }

  const Dataset& dataset_;
  int rank_;
  std::string map_;
  std::vector<std::vector<Index>> by_class_;
};

}  // namespace

std::map<int, std::vector<Index>> items_to_send(const DataMap& data_map,
                                                const Dataset& dataset,
                                                int rank,
                                                const std::string& map) {
  std::map<int, std::vector<Index>> items;
  CountedItems counted(dataset, rank, map);
  for (const MappedSamples& move : data_map.moves) {
    if (move.from == rank && move.begin < move.end) {
      counted.add(move, items[move.to]);
    }
  }
  for (auto& [to, of_it] : items) {
    std::sort(of_it.begin(), of_it.end());
  }
  return items;
}

std::vector<Index> items_that_leave(const DataMap& data_map,
                                    const Dataset& dataset,
                                    int rank,
                                    const std::string& map) {
  std::vector<Index> leaving;
  for (const auto& [to, items] : items_to_send(data_map, dataset, rank, map)) {
    leaving.insert(leaving.end(), items.begin(), items.end());
  }
  std::sort(leaving.begin(), leaving.end());
  return leaving;
}

std::map<int, Index> items_to_receive(const DataMap& data_map, int rank) {
  std::map<int, Index> items;
  for (const MappedSamples& move : data_map.moves) {
    if (move.to == rank && move.begin < move.end) {
      items[move.from] += move.end - move.begin;
    }
  }
  return items;
}

}  // namespace tessera::engine
