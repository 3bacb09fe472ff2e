#include "engine/page/words.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <utility>

namespace tessera::engine {

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) {
    return "–";
  }
  if (seconds < 10) {
    return fmt::format("{:.1f} s", seconds);
  }
  const auto whole = static_cast<Index>(std::llround(seconds));
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{} min {} s", whole / 60, whole % 60);
  }
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string host_of(const RunData& run, int rank) {
  if (const auto device = run.devices.find(rank);
      device != run.devices.end() && !device->second.host.empty()) {
    return device->second.host;
  }
  if (run.info) {
    for (const RunRank& each : run.info->ranks) {
      if (each.rank == rank) {
        return each.host;
      }
    }
  }
  return "";
}

std::string rank_name(const RunData& run, int rank) {
  const std::string host = host_of(run, rank);
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {}, {}", rank, host);
}

std::string stem_of(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

std::string cut_text(const OutlinedGroup& group) {
  std::set<std::pair<Index, Index>> images;
  std::set<std::pair<Index, Index>> channels;
  std::set<std::pair<Index, Index>> rows;
  std::set<std::pair<Index, Index>> cols;
  const auto add = [](std::set<std::pair<Index, Index>>& ranges, const Range& range) {
    ranges.emplace(range.begin, range.end);
  };
  for (const OutlinedTile& tile : group.tiles) {
    if (!tile.owned.empty()) {
      add(images, tile.owned.images);
      add(channels, tile.owned.channels);
      add(rows, tile.owned.rows);
      add(cols, tile.owned.cols);
    }
  }
  std::vector<std::string> words;
  if (rows.size() > 1 || cols.size() > 1) {
    words.push_back(fmt::format("{}x{} tiles", rows.size(), cols.size()));
  }
  if (images.size() > 1) {
    words.push_back(fmt::format("images in {}", images.size()));
  }
  if (channels.size() > 1) {
    words.push_back(fmt::format("channels in {}", channels.size()));
  }
  return words.empty() ? "one device" : fmt::format("{}", fmt::join(words, ", "));
}

std::string layers_name(const OutlinedGroup& group) {
  return group.first == group.last ? fmt::format("layer {}", group.first)
                                   : fmt::format("layers {}-{}", group.first, group.last);
}

}  // namespace tessera::engine
