#include "partitioner/search/group_memory.h"

#include <algorithm>
#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "partitioner/cfg/model_file.h"
#include "partitioner/plan/plan.h"
#include "partitioner/search/search.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

Index most_bytes(const std::vector<MemoryUse>& ranks) {
  Index most = 0;
  for (const MemoryUse& use : ranks) {
    most = std::max(most, use.total());
  }
  return most;
}

}  // namespace

TEST_CASE("what a search estimates of memory is about what is planned") {
  const Network network = read_model(TESSERA_SOURCE_DIR "/models/yolov2-early.cfg").network;
  const ClusterProfile cluster = equal_devices({.count = 8, .program_bytes = 0});
  SearchOptions options;
  options.batch = 8;
  for (const auto [rows, cols, from] :
       {std::array{4, 2, 16}, std::array{2, 2, 8}, std::array{8, 1, 12}, std::array{1, 1, 0}}) {
    CAPTURE(rows);
    CAPTURE(from);
    Shorthand shorthand;
    shorthand.grid_rows = rows;
    shorthand.grid_cols = cols;
    shorthand.data_parallel_from = from;
    shorthand.ranks = 8;
    const Partition partition = make_partition(network, shorthand);
    const auto planned =
        static_cast<double>(most_bytes(searched_memory(network, cluster, options, partition)));
    const auto estimated =
        static_cast<double>(most_bytes(estimated_memory_of_ranks(network, partition, options)));
    CHECK(estimated >= 0.8 * planned);
    CHECK(estimated <= 1.3 * planned);
  }
}

TEST_CASE("who reads for all has the pictures of all") {
  const Network network = read_model(TESSERA_SOURCE_DIR "/models/lenet5.cfg").network;
  SearchOptions options;
  options.batch = 4;
  options.reader = Reader::rank(1);
  options.memory.picture_batches = 2;
  options.memory.decoding_bytes = 1000;
  Shorthand shorthand;
  shorthand.grid_rows = 2;
  shorthand.ranks = 2;
  shorthand.reader = options.reader;
  const Partition partition = make_partition(network, shorthand);
  const auto planned = searched_memory(network, equal_devices({.count = 2}), options, partition);
  const auto estimated = estimated_memory_of_ranks(network, partition, options);
  for (const std::size_t rank : {0U, 1U}) {
    CHECK(estimated[rank].pictures == planned[rank].pictures);
    CHECK(estimated[rank].decoding == planned[rank].decoding);
  }
}
