// Which samples move where, as a text file (TOML) that a person can read: what `tessera balance`
// writes.
//
// Samples of a device are numbered from 0, in the order in which its data set lists them, or where
// a move is of a class, those of the class are. Those at the end move.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "partitioner/balance/balance.h"
#include "partitioner/balance/class_balance.h"

namespace tessera::partitioner {

// Samples [begin, end) of device `from`.
struct MappedSamples {
  int from = 0;
  int to = 0;
  Index begin = 0;
  Index end = 0;
  std::string of_class = {};  // its name; empty: samples of all classes are counted
  friend bool operator==(const MappedSamples&, const MappedSamples&) = default;
};

// Pictures that stay are not like all: most of an epoch is to have those of all devices.
inline constexpr double kMostWhileMoving = 0.25;

struct DataMap {
  std::vector<Index> before;         // samples of each device
  std::vector<MappedSamples> moves;  // by `from`, then `begin`
  // The share of the first epoch that is trained on samples that stay while the others move; from 0
  // to kMostWhileMoving.
  double share_while_moving = 0;
  friend bool operator==(const DataMap&, const DataMap&) = default;
};

[[nodiscard]] DataMap data_map(const BalanceProblem& problem, const Balance& balance);
[[nodiscard]] DataMap data_map(const ClassSamples& classes, const ClassBalance& balance);

// Samples of each device that do not move, and all that it has after the moves.
[[nodiscard]] std::vector<Index> samples_staying(const DataMap& map);
[[nodiscard]] std::vector<Index> samples_after(const DataMap& map);

// parse_data_map(to_text(map), ...) == map. `name` is for messages; InputError where the text is no
// data map, or moves a sample twice or one that does not exist. Of the moves from a device all are
// of a class or none.
[[nodiscard]] std::string to_text(const DataMap& map);
// The text of a file that should be one.
[[nodiscard]] std::string read_data_map(const std::filesystem::path& path);
[[nodiscard]] DataMap parse_data_map(const std::string& text, const std::string& name);

}  // namespace tessera::partitioner
