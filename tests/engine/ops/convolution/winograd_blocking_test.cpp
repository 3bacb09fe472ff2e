#include "engine/ops/convolution/winograd_blocking.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Blocking;
using engine::blocking_in_cache;
using engine::blocking_of;
using engine::blocks_of;
using engine::PassBytes;
using engine::WinogradScratch;

constexpr Index kFloat = sizeof(float);
constexpr Index kKib = 1024;

// Calls check(side, ins, outs, tiles, moves).
template <class Check>
void for_each_pass(Check check) {
  for (const Index side : {2, 4}) {
    for (const Index ins : {1, 20, 32, 64, 128, 256}) {
      for (const Index outs : {1, 20, 32, 64, 128, 256}) {
        for (const Index tiles : {1, 6, 7, 100, 5776}) {
          for (const Index moves : {1, 2}) {
            CAPTURE(side);
            CAPTURE(ins);
            CAPTURE(outs);
            CAPTURE(tiles);
            CAPTURE(moves);
            check(side, ins, outs, tiles, moves);
          }
        }
      }
    }
  }
}

TEST_CASE(
    "batches of tiles that threads compute together stay in the cache beside the filters they "
    "meet") {
  Index together = 0;
  Index by_inputs = 0;
  for_each_pass([&](Index side, Index ins, Index outs, Index tiles, Index moves) {
    const PassBytes pass(side, ins, outs, kFloat, moves);
    const Blocking blocking =
        blocking_in_cache(blocking_of(side, ins, outs, tiles), pass, 512 * kKib);
    if (blocking.together) {
      ++together;
      by_inputs += blocking.by_inputs ? 1 : 0;
      const Index all = blocking.by_inputs ? blocks_of(outs) : blocks_of(ins);
      const Index others = blocking.by_inputs ? blocks_of(ins) : blocks_of(outs);
      CHECK(blocking.part_blocks == (blocking.by_inputs ? all : 1));
      CHECK(pass.filters / others + blocking.tiles * (all + 1) * pass.block < 512 * kKib);
    }
  });
  CHECK(together >= 20);
  CHECK(by_inputs >= 5);
}

TEST_CASE("such batches take no more scratch than is planned, and keep the order of sums") {
  for_each_pass([](Index side, Index ins, Index outs, Index tiles, Index moves) {
    const Blocking planned = blocking_of(side, ins, outs, tiles);
    for (const Index cache : {Index{0}, 256 * kKib, 512 * kKib, 1024 * kKib}) {
      CAPTURE(cache);
      const Blocking blocking =
          blocking_in_cache(planned, PassBytes(side, ins, outs, kFloat, moves), cache);
      const Index in_blocks = blocking.by_inputs ? 1 : blocks_of(ins);
      const WinogradScratch<float> needed(nullptr, side, blocking, in_blocks);
      const WinogradScratch<float> room(nullptr, side, planned, blocks_of(ins));
      CHECK(needed.elements(1) <= room.elements(1));
      CHECK(needed.filter_elements() == room.filter_elements());
      CHECK(blocking.part_channels == planned.part_channels);
      CHECK(blocking.tiles >= 1);
      CHECK((cache > 0 || !blocking.together));
    }
  });
}

TEST_CASE("what a large cache holds anyway is computed by each thread for itself") {
  for_each_pass([](Index side, Index ins, Index outs, Index tiles, Index moves) {
    const PassBytes pass(side, ins, outs, kFloat, moves);
    CHECK_FALSE(
        blocking_in_cache(blocking_of(side, ins, outs, tiles), pass, Index{1} << 30U).together);
  });
}

}  // namespace
