#include "partitioner/partition/compression.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // project

namespace {

using Kind = Compression::Kind;

constexpr Compression kSome[] = {Compression::Exact,
                                 Compression::Half,
                                 {.kind = Kind::TopK, .fraction = 0.01},
                                 {.kind = Kind::TopK, .fraction = 1},
                                 {.kind = Kind::Sign},
                                 {.kind = Kind::LowRank, .rank = 2}};

TEST_CASE("compressions are found by their text") {
  for (const Compression& compression : kSome) {
    CHECK(compression_named(to_text(compression)) == compression);
  }
  CHECK(to_text(kSome[2]) == "topk:0.01");
  for (const char* text : {"",
                           "quarter",
                           "topk",
                           "topk:",
                           "topk:0",
                           "topk:-0.1",
                           "topk:1.01",
                           "topk:nan",
                           "topk:0.1x",
                           "sign:1",
                           "low-rank",
                           "low-rank:0",
                           "low-rank:257",
                           "low-rank:1.5",
                           "Sign"}) {
    CHECK_MESSAGE(!compression_named(text), text);
  }
}

TEST_CASE("a packed run takes what its kind says, and never more than plain numbers") {
  const ElementRun run{4096, 64};
  CHECK(packed_bytes(kSome[0], run, 4) == 16384);
  CHECK(packed_bytes(kSome[1], run, 4) == 8192);
  CHECK(packed_bytes(kSome[2], run, 4) == 41 * 8);  // places and values of 40.96 of them
  CHECK(packed_bytes(kSome[3], run, 4) == 16384);
  CHECK(packed_bytes(kSome[4], run, 4) == 4 + 512);
  CHECK(packed_bytes(kSome[5], run, 4) == 2 * (64 + 64) * 4);
  for (const Compression& compression : kSome) {
    for (Index elements = 0; elements < 100; ++elements) {
      for (const Index row : {1, 7, 64}) {
        const Index bytes = packed_bytes(compression, {elements, row}, 4);
        CHECK(bytes <= 4 * elements);
        CHECK((bytes > 0) == (elements > 0));
      }
    }
  }
}

TEST_CASE("a run of a few elements of a long row is a matrix of one row") {
  const LowRankShape shape = low_rank_shape(kSome[5], {10, 64});
  CHECK(shape.rows == 1);
  CHECK(shape.cols == 10);
  CHECK(shape.rank == 1);
}

}  // namespace
