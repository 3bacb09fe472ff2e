// How a tensor lies in memory, as far as planning has to know: cells hold their channels in blocks,
// so a buffer of C channels takes up ceil(C / block) * block of them. The block depends on the
// number of channels alone, so that every rank and every machine lays a region out alike.

#pragma once

#include "partitioner/base/region.h"

namespace tessera {

// Channels that lie side by side in a cell of a buffer with `channels` channels in all. Up to four
// are not padded.
[[nodiscard]] constexpr Index channel_block(Index channels) {
  if (channels <= 4) {
    return channels < 1 ? 1 : channels;
  }
  return channels <= 8 ? 8 : 16;
}

// Scalars in a buffer of `region`, the padding of its last channel block included.
[[nodiscard]] constexpr Index blocked_volume(const Region& region) {
  const Index channels = region.channels.size();
  const Index block = channel_block(channels);
  const Index padded = (channels + block - 1) / block * block;
  return region.images.size() * padded * region.rows.size() * region.cols.size();
}

}  // namespace tessera
