#include "engine/session/data_needs.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/data/decoding_need.h"
#include "engine/system/system_memory.h"
#include "partitioner/base/quantities.h"
#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

void add_needs(const Dataset& dataset, const RenderingRules& rules, DataNeeds& needs) {
  add_needs(dataset, most_decoding(dataset, needed_detail(rules)), needs);
}

void add_needs(const Dataset& dataset, const DecodingNeed& most, DataNeeds& needs) {
  needs.decoding_bytes += most.bytes;
  needs.own_pictures += most.pictures;
  needs.own_cached_bytes += most.cached_bytes;
  needs.data_bytes += dataset.bytes();
  if (dataset.files() != nullptr) {  // a record of each is kept with the list
    needs.data_bytes += dataset.size() * static_cast<Index>(sizeof(PictureRecord));
  }
  if (most.bytes > needs.largest_bytes) {
    needs.largest_bytes = most.bytes;
    needs.largest_picture = dataset.name(most.item);
  }
}

DataNeeds most_needs(const DataNeeds& mine, const Communicator& communicator) {
  struct Numbers {
    Index decoding = 0;
    Index data = 0;
    Index largest = 0;
    Index tested = 0;
  };
  DataNeeds most;
  most.own_pictures = mine.own_pictures;
  most.own_cached_bytes = mine.own_cached_bytes;
  most.own_file_bytes = mine.own_file_bytes;
  std::size_t with_largest = 0;
  const auto all = communicator.of_ranks(
      Numbers{mine.decoding_bytes, mine.data_bytes, mine.largest_bytes, mine.tested_pictures});
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    most.decoding_bytes = std::max(most.decoding_bytes, all[rank].decoding);
    most.data_bytes = std::max(most.data_bytes, all[rank].data);
    most.tested_pictures = std::max(most.tested_pictures, all[rank].tested);
    if (all[rank].largest > most.largest_bytes) {
      most.largest_bytes = all[rank].largest;
      with_largest = rank;
    }
  }
  most.largest_picture = texts_of_ranks(communicator, mine.largest_picture)[with_largest];
  return most;
}

void expect_data_fits(const DataNeeds& needs, Index limit_bytes) {
  if (needs.largest_bytes > kMaxDecodingBytes) {
    throw AgreedError(
        fmt::format("{}: decoding this picture takes {}, the limit is {}: scale it down, or save "
                    "it as a non-progressive JPEG",
                    needs.largest_picture,
                    readable_bytes(needs.largest_bytes),
                    readable_bytes(kMaxDecodingBytes)));
  }
  const Index program = partitioner::kUsualProgramBytes;
  if (limit_bytes <= program || needs.decoding_bytes + needs.data_bytes + program <= limit_bytes) {
    return;  // or there is no limit, or one that nothing fits
  }
  if (needs.decoding_bytes > needs.data_bytes) {
    throw AgreedError(fmt::format(
        "{}: decoding this picture takes {}, which with {} of the program and {} of the data set "
        "is more than --memory-limit allows ({}): scale it down, or raise the limit",
        needs.largest_picture,
        readable_bytes(needs.largest_bytes),
        readable_bytes(program),
        readable_bytes(needs.data_bytes),
        readable_bytes(limit_bytes)));
  }
  throw AgreedError(fmt::format(
      "--memory-limit: the limit is {}, the data set takes {} in memory and the program {}: raise "
      "the limit, or keep the pictures as files in a folder per class",
      readable_bytes(limit_bytes),
      readable_bytes(needs.data_bytes),
      readable_bytes(program)));
}

Index memory_to_look(int ranks) {
  const Index free_bytes = free_memory_bytes();
  return free_bytes == 0 ? std::numeric_limits<Index>::max() : free_bytes / 2 / ranks;
}

}  // namespace tessera::engine
