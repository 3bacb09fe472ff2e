#include "engine/comm/pair_exchange.h"

#include <cstdint>

#include "engine/comm/tags.h"

namespace tessera::engine {

void exchange_known(const Communicator& communicator,
                    const BytesByRank& mine,
                    BytesByRank& theirs) {
  Requests requests;
  for (auto& [from, bytes] : theirs) {
    if (!bytes.empty()) {
      communicator.post_receive(requests, from, kPairTag, bytes);
    }
  }
  for (const auto& [to, bytes] : mine) {
    if (!bytes.empty()) {
      communicator.post_send(requests, to, kPairTag, bytes);
    }
  }
  requests.wait_all();
}

BytesByRank exchange_pairs(const Communicator& communicator,
                           const BytesByRank& mine,
                           const std::vector<int>& from) {
  std::map<int, std::uint64_t> sizes;
  std::map<int, std::uint64_t> own_sizes;
  Requests requests;
  for (const int rank : from) {
    communicator.post_receive(requests, rank, kPairSizeTag, bytes_of(&sizes[rank], 1));
  }
  for (const auto& [to, bytes] : mine) {
    std::uint64_t& size = own_sizes[to];
    size = bytes.size();
    communicator.post_send(
        requests, to, kPairSizeTag, bytes_of(static_cast<const std::uint64_t*>(&size), 1));
  }
  requests.wait_all();
  BytesByRank theirs;
  for (const auto& [rank, size] : sizes) {
    theirs[rank].resize(static_cast<std::size_t>(size));
  }
  exchange_known(communicator, mine, theirs);
  return theirs;
}

}  // namespace tessera::engine
