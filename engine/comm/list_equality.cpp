#include "engine/comm/list_equality.h"

#include <algorithm>

#include "engine/base/digest.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/system/host_name.h"

namespace tessera::engine {

namespace {

constexpr Index kPart = 256;  // entries

using Digests = std::vector<std::uint64_t>;

// The digest of each part, and of the number of entries.
Digests digests_of(Index count, const std::function<std::string(Index)>& entry) {
  Digests digests;
  for (Index begin = 0; begin < count; begin += kPart) {
    Digest digest;
    for (Index i = begin; i < std::min(begin + kPart, count); ++i) {
      digest.add(std::string_view(entry(i)));
    }
    digests.push_back(digest.value());
  }
  digests.push_back(static_cast<std::uint64_t>(count));
  return digests;
}

std::uint64_t digest_of(const Digests& digests) {
  Digest digest;
  for (const std::uint64_t each : digests) {
    digest.add(each);
  }
  return digest.value();
}

template <class List>
Index first_unlike(const List& one, const List& other) {
  return std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first - one.begin();
}

}  // namespace

std::optional<ListDifference> list_difference(Index count,
                                              const std::function<std::string(Index)>& entry,
                                              const Communicator& communicator) {
  const Digests mine = digests_of(count, entry);
  const std::vector<std::uint64_t> all = communicator.of_ranks(digest_of(mine));
  const auto other =
      std::find_if(all.begin(), all.end(), [&](std::uint64_t its) { return its != all[0]; });
  if (other == all.end()) {
    return std::nullopt;
  }
  const auto rank = static_cast<std::size_t>(other - all.begin());
  const std::vector<Digests> parts = communicator.of_ranks(mine);
  // The one before: the number of entries stands behind the last part, where the other may go on.
  const Index begin = kPart * std::max<Index>(0, first_unlike(parts[0], parts[rank]) - 1);
  std::vector<std::string> entries{host_name()};
  for (Index i = begin; i < std::min(begin + 3 * kPart, count); ++i) {
    entries.push_back(entry(i));
  }
  std::vector<std::vector<std::string>> texts = lists_of_ranks(communicator, entries);
  std::vector<std::string>& first = texts[0];
  std::vector<std::string>& its = texts[rank];
  ListDifference difference{static_cast<int>(rank), its[0], first[0], 0, {}, {}};
  first.erase(first.begin());
  its.erase(its.begin());
  const Index unlike = first_unlike(first, its);
  difference.place = begin + unlike;
  difference.entries.assign(its.data() + unlike, its.data() + its.size());
  difference.first_entries.assign(first.data() + unlike, first.data() + first.size());
  return difference;
}

}  // namespace tessera::engine
