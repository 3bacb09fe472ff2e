#include "engine/comm/list_equality.h"

#include <algorithm>
#include <cstring>

#include "engine/base/digest.h"
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

// The texts of each rank on every rank.
std::vector<std::vector<std::string>> lists_of_ranks(const std::vector<std::string>& mine,
                                                     const Communicator& communicator) {
  std::vector<std::byte> packed;
  for (const std::string& text : mine) {
    const auto size = static_cast<std::uint64_t>(text.size());
    const auto head = bytes_of(&size, 1);
    const auto body = bytes_of(text.data(), std::ssize(text));
    packed.insert(packed.end(), head.begin(), head.end());
    packed.insert(packed.end(), body.begin(), body.end());
  }
  std::vector<std::vector<std::string>> all;
  for (const std::vector<std::byte>& bytes : communicator.gather_all(packed)) {
    std::vector<std::string>& texts = all.emplace_back();
    for (std::size_t at = 0; at < bytes.size();) {
      std::uint64_t size = 0;
      std::memcpy(&size, bytes.data() + at, sizeof(size));
      at += sizeof(size);
      texts.emplace_back(reinterpret_cast<const char*>(bytes.data() + at),
                         static_cast<std::size_t>(size));
      at += texts.back().size();
    }
  }
  return all;
}

Digests unpacked(const std::vector<std::byte>& bytes) {
  Digests digests(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(digests.data(), bytes.data(), digests.size() * sizeof(std::uint64_t));
  return digests;
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
  const auto parts = communicator.gather_all(bytes_of(mine.data(), std::ssize(mine)));
  // The one before: the number of entries stands behind the last part, where the other may go on.
  const Index begin =
      kPart * std::max<Index>(0, first_unlike(unpacked(parts[0]), unpacked(parts[rank])) - 1);
  std::vector<std::string> entries{host_name()};
  for (Index i = begin; i < std::min(begin + 3 * kPart, count); ++i) {
    entries.push_back(entry(i));
  }
  std::vector<std::vector<std::string>> texts = lists_of_ranks(entries, communicator);
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
