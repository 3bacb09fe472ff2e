#include "partitioner/partition/reader.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::kImage;
using partitioner::Reader;

}  // namespace

TEST_CASE("where every rank reads, the image is the only map that is not sent") {
  const Reader every = Reader::every_rank();
  CHECK(every == Reader{});
  CHECK(every.reads(0));
  CHECK(every.reads(7));
  CHECK(!every.is_sent(kImage));
  CHECK(every.is_sent(0));
  CHECK(!every.single_rank());
  CHECK(every.first_rank() == 0);
  CHECK(every.is_among(1));
}

TEST_CASE("where one rank reads, it alone does, and the image is sent") {
  const Reader one = Reader::rank(2);
  CHECK(one != Reader::every_rank());
  CHECK(one != Reader::rank(1));
  CHECK(one.reads(2));
  CHECK(!one.reads(0));
  CHECK(one.is_sent(kImage));
  CHECK(one.single_rank() == 2);
  CHECK(one.first_rank() == 2);
  CHECK(one.is_among(3));
  CHECK(!one.is_among(2));
  CHECK(!Reader::rank(-1).is_among(3));
}
