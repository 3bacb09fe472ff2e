#include "partitioner/balance/data_map.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "partitioner/base/toml_reader.h"

namespace tessera::partitioner {

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
  return map;
}

std::string to_text(const DataMap& map) {
  std::string text = fmt::format(
      "# Which samples move between devices before training. Devices are counted from 0, as ranks "
      "are;\n# samples [begin, end) of `from`, in the order in which its data set lists them, move "
      "to `to`.\n\nsamples = [{}]\n",
      fmt::join(map.before, ", "));
  for (const MappedSamples& move : map.moves) {
    text += fmt::format("\n[[move]]\nfrom = {}\nto = {}\nbegin = {}\nend = {}\n",
                        move.from,
                        move.to,
                        move.begin,
                        move.end);
  }
  return text;
}

DataMap parse_data_map(const std::string& text, const std::string& name) {
  constexpr Index kMostDevices = 4096;
  const TomlReader reader(name, "a data map", {"samples", "move"});
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
  const auto last = static_cast<Index>(map.before.size()) - 1;
  std::vector<Index> next(map.before.size());
  for (const toml::table* each : reader.tables(table, "move")) {
    reader.check_keys(*each, {"from", "to", "begin", "end"});
    MappedSamples move;
    move.from = static_cast<int>(reader.integer(*each, "from", 0, last));
    move.to = static_cast<int>(reader.integer(*each, "to", 0, last));
    const auto from = static_cast<std::size_t>(move.from);
    if (move.to == move.from) {
      reader.fail(*each, fmt::format("device {} cannot move samples to itself", move.from));
    }
    move.begin = reader.integer(*each, "begin", 0, map.before[from]);
    move.end = reader.integer(*each, "end", move.begin, map.before[from]);
    if (move.begin < next[from]) {
      reader.fail(*each,
                  fmt::format("sample {} of device {} is in an earlier move, or moves are not in "
                              "the order of samples",
                              move.begin,
                              move.from));
    }
    next[from] = move.end;
    map.moves.push_back(move);
  }
  return map;
}

}  // namespace tessera::partitioner
