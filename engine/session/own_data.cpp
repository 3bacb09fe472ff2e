#include "engine/session/own_data.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/comm/rank_equality.h"
#include "engine/comm/texts_of_ranks.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;
using ClassNames = std::vector<std::string>;

// What kind of pictures a half has.
struct Kind {
  int is_there = 0;
  int of_files = 0;
  partitioner::MapShape shape = {};  // of pictures held as bytes
  friend bool operator==(const Kind&, const Kind&) = default;
};

Kind kind_of(const std::optional<InspectedHalf>& half) {
  Kind kind;
  if (half) {
    kind.is_there = 1;
    kind.of_files = half->dataset.of_files() ? 1 : 0;
    if (const BytePictures* held = half->dataset.byte_pictures()) {
      kind.shape = held->shape;
    }
  }
  return kind;
}

std::string described(const Kind& kind) {
  return kind.of_files != 0 ? "picture files"
                            : fmt::format("IDX or CIFAR pictures of {}x{}x{}",
                                          kind.shape.channels,
                                          kind.shape.rows,
                                          kind.shape.cols);
}

// The kind of the lowest rank that has one.
std::optional<Kind> common_kind(const Kind& mine, const Communicator& communicator) {
  const std::vector<Kind> kinds = communicator.of_ranks(mine);
  const std::vector<std::string> hosts = hosts_of_ranks(communicator);
  std::optional<std::size_t> first;
  for (std::size_t rank = 0; rank < kinds.size(); ++rank) {
    if (kinds[rank].is_there == 0) {
      continue;
    }
    first = first.value_or(rank);
    if (!(kinds[rank] == kinds[*first])) {
      throw AgreedError(fmt::format("{} has {}, {} has {}: with a data map all need the same kind",
                                    rank_on(static_cast<int>(rank), hosts[rank]),
                                    described(kinds[rank]),
                                    rank_on(static_cast<int>(*first), hosts[*first]),
                                    described(kinds[*first])));
    }
  }
  return first ? std::optional(kinds[*first]) : std::nullopt;
}

InspectedHalf empty_half(const Kind& kind, const std::string& path, Index channels) {
  if (kind.of_files != 0) {
    return InspectedHalf(Dataset(PictureFiles{}, path, channels));
  }
  return InspectedHalf(Dataset(BytePictures{kind.shape, {}, {}, {}}, path, channels));
}

std::vector<ClassNames> classes_of_ranks(const InspectedData& data,
                                         const Communicator& communicator) {
  const auto halves = data.halves();
  return lists_of_ranks(communicator,
                        halves.empty() ? ClassNames() : halves.front()->dataset.class_names());
}

ClassNames sorted_names(const std::vector<ClassNames>& all) {
  std::set<std::string> names;
  for (const ClassNames& of_rank : all) {
    names.insert(of_rank.begin(), of_rank.end());
  }
  return {names.begin(), names.end()};
}

ClassNames longest_list(const std::vector<ClassNames>& all, const Communicator& communicator) {
  const auto longest = std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto [mine, theirs] =
        std::mismatch(all[rank].begin(), all[rank].end(), longest->begin(), longest->end());
    if (mine != all[rank].end()) {
      const std::vector<std::string> hosts = hosts_of_ranks(communicator);
      const auto other = static_cast<std::size_t>(longest - all.begin());
      throw AgreedError(
          fmt::format("{} calls class {} \"{}\", {} calls it \"{}\": all need the same "
                      "classes",
                      rank_on(static_cast<int>(rank), hosts[rank]),
                      mine - all[rank].begin(),
                      printable_start(*mine),
                      rank_on(static_cast<int>(other), hosts[other]),
                      printable_start(*theirs)));
    }
  }
  return *longest;
}

}  // namespace

std::string path_of_rank(const std::string& path, int rank) {
  constexpr std::string_view kRank = "{rank}";
  std::string result = path;
  for (std::size_t at = result.find(kRank); at != std::string::npos; at = result.find(kRank)) {
    result.replace(at, kRank.size(), std::to_string(rank));
  }
  return result;
}

void expect_own_path(const std::string& path, const Communicator& communicator) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  const std::vector<std::string> hosts = hosts_of_ranks(communicator);
  const std::vector<std::string> paths =
      texts_of_ranks(communicator, error || !fs::exists(real, error) ? "" : real.string());
  for (std::size_t rank = 0; rank < paths.size(); ++rank) {
    for (std::size_t before = 0; before < rank && !paths[rank].empty(); ++before) {
      if (paths[before] == paths[rank] && hosts[before] == hosts[rank]) {
        throw AgreedError(fmt::format(
            "ranks {} and {} on {} would both train on {}: with a data map each rank has its own "
            "data; give --data a path with {{rank}} in it, which stands for its number",
            before,
            rank,
            hosts[rank],
            paths[rank]));
      }
    }
  }
}

void unite(InspectedData& data, Index channels, const Communicator& communicator) {
  std::optional<Kind> kind;
  for (auto* half : {&data.training, &data.testing}) {
    if (const auto common = common_kind(kind_of(*half), communicator)) {
      kind = common;
      if (!*half) {
        half->emplace(empty_half(*common, data.path, channels));
      }
    }
  }
  if (!kind) {
    throw AgreedError("no rank has any data: check --data");
  }
  const std::vector<ClassNames> all = classes_of_ranks(data, communicator);
  const bool alike =
      std::all_of(all.begin(), all.end(), [&](const ClassNames& names) { return names == all[0]; });
  const ClassNames names = alike                 ? all[0]
                           : kind->of_files != 0 ? sorted_names(all)
                                                 : longest_list(all, communicator);
  for (InspectedHalf* half : data.halves()) {
    half->dataset.set_classes(names);
  }
}

std::string summary_of_ranks(const InspectedData& data, const Communicator& communicator) {
  struct Counts {
    Index training = 0;
    Index testing = 0;
  };
  const auto size = [](const auto& half) { return half ? half->dataset.size() : Index{0}; };
  Counts all;
  for (const Counts& theirs :
       communicator.of_ranks(Counts{size(data.training), size(data.testing)})) {
    all.training += theirs.training;
    all.testing += theirs.testing;
  }
  return fmt::format("{} on {}, {}{}",
                     counted(all.training + all.testing, "picture"),
                     counted(communicator.size(), "rank"),
                     described_classes(data.halves().front()->dataset),
                     data.testing ? fmt::format(", {} for testing", all.testing) : "");
}

}  // namespace tessera::engine
