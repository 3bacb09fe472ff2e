#include "partitioner/partition/gradient_reduction.h"

#include <vector>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

// Of what is learnt in a layer.
Index bytes_of_layer(const Network& network, int layer) {
  const LayerParameters of = layer_parameters(network, layer);
  Index bytes = 0;
  for (const ParameterShape& shape : {of.weight, of.bias, of.scale}) {
    bytes += shape.channels * shape.row * 4;
  }
  return bytes;
}

Index bytes_of_bucket(const Network& network, const GradientBucket& bucket) {
  Index bytes = 0;
  for (int layer = bucket.first; layer <= bucket.last; ++layer) {
    bytes += bytes_of_layer(network, layer);
  }
  return bytes;
}

TEST_CASE("each layer that learns is in one bucket, the last layers first") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    tests::Draw draw(seed);
    const Network network = tests::random_network(draw, {});
    for (const Index least : {Index{1}, Index{5000}, Index{1} << 40U}) {
      int next = network.size();
      for (const GradientBucket& bucket : gradient_buckets(network, {.bucket_bytes = least})) {
        CHECK(bucket.first <= bucket.last);
        CHECK(bucket.last < next);
        CHECK(bytes_of_layer(network, bucket.first) > 0);
        for (int layer = bucket.last + 1; layer < next; ++layer) {
          CHECK(bytes_of_layer(network, layer) == 0);
        }
        next = bucket.first;
      }
      for (int layer = 0; layer < next; ++layer) {
        CHECK(bytes_of_layer(network, layer) == 0);
      }
    }
  }
}

TEST_CASE("all buckets but the last are full, and none could be closed earlier") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    tests::Draw draw(seed);
    const Network network = tests::random_network(draw, {});
    constexpr Index kLeast = 5000;
    const std::vector<GradientBucket> buckets = gradient_buckets(network, {.bucket_bytes = kLeast});
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const Index bytes = bytes_of_bucket(network, buckets[i]);
      CHECK((bytes >= kLeast || i + 1 == buckets.size()));
      CHECK(bytes - bytes_of_layer(network, buckets[i].first) < kLeast);
    }
  }
}

TEST_CASE("a message in half precision takes half of the bytes, and a scale") {
  CHECK(reduction_message_bytes(Compression::Exact, {1000}, 4) == 4000);
  CHECK(reduction_message_bytes(Compression::Half, {1000}, 4) == 2004);
  CHECK(reduction_message_bytes(Compression::Half, {0}, 4) == 0);
}

}  // namespace
