#include "partitioner/plan/payload.h"

#include <stdexcept>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::Payload;

}  // namespace

TEST_CASE("a payload is read as what it carries, and as nothing else") {
  const Region region{{0, 2}, {0, 3}, {1, 4}, {2, 7}};
  const Payload cells = Payload::cells(region);
  CHECK(cells.kind() == Payload::Kind::Cells);
  CHECK(cells.cells() == region);
  CHECK_THROWS_AS((void)cells.channels(), std::logic_error);
  const Payload channels = Payload::channels({2, 7});
  CHECK(channels.kind() == Payload::Kind::Channels);
  CHECK(channels.channels() == Range{2, 7});
  CHECK_THROWS_AS((void)channels.element_run(), std::logic_error);
  const Payload run = Payload::element_run({2, 7});
  CHECK(run.kind() == Payload::Kind::ElementRun);
  CHECK(run.element_run() == Range{2, 7});
  CHECK_THROWS_AS((void)run.element_count(), std::logic_error);
  const Payload count = Payload::element_count({.elements = 5, .packed_bytes = 9});
  CHECK(count.kind() == Payload::Kind::ElementCount);
  CHECK(count.element_count().elements == 5);
  CHECK(count.element_count().packed_bytes == 9);
  CHECK_THROWS_AS((void)count.images(), std::logic_error);
  const Payload images = Payload::images({2, 7});
  CHECK(images.kind() == Payload::Kind::Images);
  CHECK(images.images() == Range{2, 7});
  CHECK_THROWS_AS((void)images.cells(), std::logic_error);
  CHECK(Payload::loss_share().kind() == Payload::Kind::LossShare);
}

TEST_CASE("payloads of different kinds differ though their numbers are the same") {
  CHECK(Payload::channels({2, 7}) == Payload::channels({2, 7}));
  CHECK(Payload::channels({2, 7}) != Payload::channels({2, 8}));
  CHECK(Payload::channels({2, 7}) != Payload::element_run({2, 7}));
  CHECK(Payload::images({2, 7}) != Payload::element_run({2, 7}));
}

TEST_CASE("cells take a scalar each on the wire") {
  CHECK(partitioner::cell_bytes({{0, 2}, {0, 3}, {1, 4}, {2, 7}}, 4) == 2 * 3 * 3 * 5 * 4);
  CHECK(partitioner::cell_bytes({}, 4) == 0);
}
