#include "partitioner/balance/data_map.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <utility>

#include "partitioner/base/regular_file.h"
#include "partitioner/base/toml_reader.h"

namespace tessera::partitioner {

namespace {

// Steps run while samples move, for as long as that is predicted to take.
double share_while_moving(const Balance& balance) {
  constexpr double kParts = 1000;  // that a file gives it in
  if (balance.moves.empty() || balance.epoch_s <= 0) {
    return 0;
  }
  return std::min(kMostWhileMoving, std::ceil(kParts * balance.move_s / balance.epoch_s) / kParts);
}

}  // namespace

DataMap data_map(const BalanceProblem& problem, const Balance& balance) {
  DataMap map;
  for (const BalanceDevice& device : problem.devices) {
    map.before.push_back(device.samples);
  }
  std::vector<Index> end = map.before;
  for (auto move = balance.moves.rbegin(); move != balance.moves.rend(); ++move) {
    Index& left = end[static_cast<std::size_t>(move->from)];
    map.moves.push_back({move->from, move->to, left - move->count, left});
    left -= move->count;
  }
  std::reverse(map.moves.begin(), map.moves.end());
  map.share_while_moving = share_while_moving(balance);
  return map;
}

DataMap data_map(const ClassSamples& classes, const ClassBalance& balance) {
  DataMap map;
  for (std::size_t device = 0; device < classes.devices(); ++device) {
    map.before.push_back(classes.of_device(device));
  }
  std::vector<std::vector<Index>> end = classes.counts;
  for (auto move = balance.moves.rbegin(); move != balance.moves.rend(); ++move) {
    const auto at = static_cast<std::size_t>(move->of_class);
    Index& left = end[static_cast<std::size_t>(move->from)][at];
    map.moves.push_back({move->from, move->to, left - move->count, left, classes.names[at]});
    left -= move->count;
  }
  std::reverse(map.moves.begin(), map.moves.end());
  map.share_while_moving = share_while_moving(balance.balance);
  return map;
}

std::vector<Index> samples_staying(const DataMap& map) {
  std::vector<Index> samples = map.before;
  for (const MappedSamples& move : map.moves) {
    samples[static_cast<std::size_t>(move.from)] -= move.end - move.begin;
  }
  return samples;
}

std::vector<Index> samples_after(const DataMap& map) {
  std::vector<Index> samples = samples_staying(map);
  for (const MappedSamples& move : map.moves) {
    samples[static_cast<std::size_t>(move.to)] += move.end - move.begin;
  }
  return samples;
}

std::string to_text(const DataMap& map) {
  std::string text = fmt::format(
      "# Which samples move between devices before training. Devices are counted from 0, as ranks "
      "are;\n# samples [begin, end) of `from`, in the order in which its data set lists them "
      "(those "
      "of `class`,\n# where a move has one), move to `to`.\n\nsamples = [{}]\n",
      fmt::join(map.before, ", "));
  if (map.share_while_moving > 0) {
    text += fmt::format(
        "\n# Of the first epoch: trained on samples that stay, while the others move.\n"
        "share_while_moving = {}\n",
        map.share_while_moving);
  }
  for (const MappedSamples& move : map.moves) {
    text += fmt::format("\n[[move]]\nfrom = {}\nto = {}\n", move.from, move.to);
    if (!move.of_class.empty()) {
      text += fmt::format("class = {}\n", toml_quoted(move.of_class));
    }
    text += fmt::format("begin = {}\nend = {}\n", move.begin, move.end);
  }
  return text;
}

namespace {

// Moves as a file lists them, each checked against those before it.
class MoveReader {
 public:
  MoveReader(const TomlReader& reader, DataMap& map) : reader_(reader), map_(map) {}

  void add(const toml::table& table) {
    reader_.check_keys(table, {"from", "to", "class", "begin", "end"});
    const auto last = static_cast<Index>(map_.before.size()) - 1;
    MappedSamples move;
    move.from = static_cast<int>(reader_.integer(table, "from", 0, last));
    move.to = static_cast<int>(reader_.integer(table, "to", 0, last));
    if (move.to == move.from) {
      reader_.fail(table, fmt::format("device {} cannot move samples to itself", move.from));
    }
    const Index samples = map_.before[static_cast<std::size_t>(move.from)];
    move.begin = reader_.integer(table, "begin", 0, samples);
    move.end = reader_.integer(table, "end", move.begin, samples);
    if (const toml::node* name = table.get("class")) {
      move.of_class = reader_.text(*name, "class");
      if (move.of_class.empty()) {
        reader_.fail(*name, "`class` is empty: give the name of a class, or leave it out");
      }
    }
    expect_in_order(table, move);
    map_.moves.push_back(std::move(move));
  }

 private:
  void expect_in_order(const toml::table& table, const MappedSamples& move) {
    const auto [kind, first] = by_class_.try_emplace(move.from, !move.of_class.empty());
    if (!first && kind->second == move.of_class.empty()) {
      reader_.fail(table,
                   fmt::format("moves from device {} are by class and without: give all of them a "
                               "`class`, or none",
                               move.from));
    }
    Index& next = next_[{move.from, move.of_class}];
    if (move.begin < next) {
      reader_.fail(table,
                   fmt::format("sample {} of device {} is in an earlier move, or moves are not in "
                               "the order of samples",
                               move.begin,
                               move.from));
    }
    next = move.end;
    Index& gone = gone_[move.from];
    gone += move.end - move.begin;
    if (const Index samples = map_.before[static_cast<std::size_t>(move.from)]; gone > samples) {
      reader_.fail(
          table,
          fmt::format("{} samples move from device {}, which has {}", gone, move.from, samples));
    }
  }

  const TomlReader& reader_;
  DataMap& map_;
  std::map<int, bool> by_class_;                       // of the moves from a device
  std::map<std::pair<int, std::string>, Index> next_;  // sample, of a device and a class
  std::map<int, Index> gone_;                          // from a device
};

}  // namespace

std::string read_data_map(const std::filesystem::path& path) {
  constexpr Index kMostBytes = Index{1} << 26U;
  return read_regular_file(path, "a data map", kMostBytes);
}

DataMap parse_data_map(const std::string& text, const std::string& name) {
  constexpr Index kMostDevices = 4096;
  const TomlReader reader(name, "a data map", {"samples", "share_while_moving", "move"});
  const toml::table table = reader.parse(text);
  const toml::node& samples = reader.required(table, "samples");
  if (!samples.is_array() || samples.as_array()->empty() ||
      samples.as_array()->size() > static_cast<std::size_t>(kMostDevices)) {
    reader.fail(samples, "`samples` must list the number of samples of each device");
  }
  DataMap map;
  for (const toml::node& count : *samples.as_array()) {
    map.before.push_back(reader.integer(count, "samples", 0, kMostSamples));
  }
  if (const toml::node* share = table.get("share_while_moving")) {
    map.share_while_moving = reader.number_up_to(*share, "share_while_moving", kMostWhileMoving);
  }
  MoveReader moves(reader, map);
  for (const toml::table* each : reader.tables(table, "move")) {
    moves.add(*each);
  }
  return map;
}

}  // namespace tessera::partitioner
