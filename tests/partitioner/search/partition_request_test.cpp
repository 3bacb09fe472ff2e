// What requests mean for ranks and networks, and which are refused.

#include "partitioner/search/partition_request.h"

#include <string>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // project
using tessera::Index;
namespace tests = tessera::tests;

namespace {

Network tiled_network() {
  Network network;
  network.image = {3, 16, 16};
  add_layer(network, Convolution{.filters = 4, .size = 3, .padding = 1}, {kImage});
  add_layer(network, MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, Connected{.outputs = 2}, {1});
  add_layer(network, Softmax{}, {2});
  return network;
}

std::string refusal_of(const PartitionRequest& request, int ranks, Index batch = 4) {
  return tests::input_error_of(
      [&] { (void)requested_partition(tiled_network(), request, ranks, batch); });
}

}  // namespace

TEST_CASE("a request that says nothing is a grid as square as can be") {
  const Partition partition = requested_partition(tiled_network(), {}, 6, 6);
  CHECK(partition.ranks == 6);
  CHECK(partition.groups.front().rows.parts == 2);
  CHECK(partition.groups.front().cols.parts == 3);
}

TEST_CASE("a reader is every rank or one of those that there are") {
  CHECK(parse_reader("every") == Reader::every_rank());
  CHECK(parse_reader("3") == Reader::rank(3));
  for (const char* text : {"", "-1", "x", "1x", "1.5", "99999999999"}) {
    CAPTURE(text);
    CHECK(tests::has(tests::input_error_of([&] { (void)parse_reader(text); }), "--reader"));
  }
  PartitionRequest request;
  CHECK(requested_reader(request, 4) == Reader::every_rank());
  request.reader = Reader::rank(3);
  CHECK(requested_reader(request, 4) == Reader::rank(3));
  CHECK(tests::has(refusal_of(request, 3), "from 0 to 2"));
}

TEST_CASE("a grid has to fit the ranks, and options of a search need one") {
  PartitionRequest request;
  request.cut.grid = {2, 2};
  CHECK(refusal_of(request, 4).empty());
  CHECK(tests::has(refusal_of(request, 3), "2x2 needs 4 ranks, there are 3"));
  request.memory_limit_bytes = 1 << 20;
  CHECK(tests::has(refusal_of(request, 4), "--partition auto"));
}

TEST_CASE("replicas are cut alike and share the images of a pass") {
  PartitionRequest request;
  request.cut.replicas = 2;
  request.cut.sync = Synchronisation{SyncMode::Local, 4};
  const Partition partition = requested_partition(tiled_network(), request, 4, 4);
  CHECK(partition.replicas.count == 2);
  CHECK(partition.replicas.sync == *request.cut.sync);
  CHECK(tests::has(refusal_of(request, 3), "3 ranks cannot be divided into 2 replicas"));
  CHECK(tests::has(refusal_of(request, 4, 5), "5 images per pass cannot be divided"));
  request.cut.replicas.reset();
  CHECK(tests::has(refusal_of(request, 4), "--sync local:4 needs --replicas N"));
}

TEST_CASE("what is asked for is in the partition") {
  PartitionRequest request;
  request.cut.grid = {1, 2};
  request.cut.groups = {{0, 1}};
  request.cut.recompute_all = true;
  request.reader = Reader::rank(1);
  request.gradient_precision = Compression::Half;
  request.kernels = KernelRule::Reference;
  const Partition partition = requested_partition(tiled_network(), request, 2, 4);
  CHECK(partition.groups.front().last == 1);
  CHECK(partition.groups.front().recompute);
  CHECK(partition.reader == Reader::rank(1));
  CHECK(partition.gradient_reduction.compression == Compression::Half);
  CHECK(partition.kernels.front().forward == ConvolutionKernel::Reference);
}

TEST_CASE("a request says how to cut by anything but groups") {
  PartitionRequest request;
  request.cut.groups = {{0, 1}};
  CHECK_FALSE(request.says_how_to_cut());
  request.automatic = true;
  CHECK(request.says_how_to_cut());
  request = {};
  request.cut.data_parallel_from = 0;
  CHECK(request.says_how_to_cut());
}
