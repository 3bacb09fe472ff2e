#include "engine/base/tensor.h"

#include <cstdint>
#include <vector>

#include "tests/support/pieces.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Tensor;
using engine::View;
using tests::Draw;

TEST_CASE("a new tensor is zero, aligned, and has room for whole channel blocks") {
  for (const Index channels : {1, 2, 3, 4, 5, 8, 9, 16, 17, 40}) {
    Tensor<float> tensor({{2, 4}, {7, 7 + channels}, {-2, 3}, {-1, 6}});
    const Index block = channel_block(channels);
    CHECK(tensor.values().size() == Index{2} * 5 * 7 * ((channels + block - 1) / block * block));
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.values().data()) % engine::kAlignment == 0);
    for (const float value : tensor.values().span()) {
      CHECK(value == 0);
    }
  }
}

TEST_CASE("every cell of a tensor has a place of its own inside the tensor") {
  for (const Index channels : {3, 8, 13, 16, 35}) {
    Tensor<float> tensor({{1, 3}, {5, 5 + channels}, {-1, 3}, {-2, 2}});
    tests::for_each_cell(tensor.region(), [&](Index n, Index c, Index row, Index col) {
      tensor.view().at(n, c, row, col) += 1;
    });
    float sum = 0;
    for (const float value : tensor.values().span()) {
      CHECK(value <= 1);
      sum += value;
    }
    CHECK(static_cast<Index>(sum) == tensor.region().volume());
  }
}

// Two tensors around a common region, so that their blocks lie differently.
struct Pair {
  Region region;
  Tensor<double> from;
  Tensor<double> to;
};

Pair random_pair(std::uint64_t seed) {
  Draw draw(seed);
  const Region space{{0, 3}, {0, 40}, {-2, 6}, {-3, 5}};
  const Region region = tests::random_part(draw, space);
  Pair pair{region,
            Tensor<double>(hull(region, tests::random_part(draw, space))),
            Tensor<double>(hull(region, tests::random_part(draw, space)))};
  Index i = 0;
  tests::for_each_cell(pair.from.region(), [&](Index n, Index c, Index row, Index col) {
    pair.from.view().at(n, c, row, col) = static_cast<double>(++i);
  });
  std::fill_n(pair.to.values().data(), pair.to.values().size(), -1.0);
  return pair;
}

// Whether `to` is what `inside` says on the region and untouched elsewhere.
template <class Inside>
bool holds(Pair& pair, Inside inside) {
  bool all = true;
  tests::for_each_cell(pair.to.region(), [&](Index n, Index c, Index row, Index col) {
    const bool in_region =
        contains(pair.region, {{n, n + 1}, {c, c + 1}, {row, row + 1}, {col, col + 1}});
    all = all && pair.to.view().at(n, c, row, col) == (in_region ? inside(n, c, row, col) : -1);
  });
  return all;
}

TEST_CASE(
    "what is copied out of one tensor and into another arrives in its place, and nothing else "
    "changes") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed ", seed);
    Pair pair = random_pair(seed);
    if (seed >= 100) {  // some channels of single cells go together
      pair.region.rows.end = pair.region.rows.begin + 1;
      pair.region.cols.end = pair.region.cols.begin + 1;
    }
    std::vector<double> plain(static_cast<std::size_t>(pair.region.volume()));
    copy_out(View<const double>(pair.from.view()), pair.region, plain.data());
    const auto source = [&](Index n, Index c, Index row, Index col) {
      return pair.from.view().at(n, c, row, col);
    };
    copy_in(plain.data(), pair.region, pair.to.view());
    CHECK(holds(pair, source));
    add_in(plain.data(), pair.region, pair.to.view());
    CHECK(holds(
        pair, [&](Index n, Index c, Index row, Index col) { return 2 * source(n, c, row, col); }));
    set_zero(pair.to.view(), pair.region);
    CHECK(holds(pair, [](Index, Index, Index, Index) { return 0.0; }));
  }
}

TEST_CASE("packed cells are in order of images, channels, rows and columns, whatever the block") {
  Pair pair = random_pair(4);
  std::vector<double> plain(static_cast<std::size_t>(pair.region.volume()));
  copy_out(View<const double>(pair.from.view()), pair.region, plain.data());
  std::size_t at = 0;
  tests::for_each_cell(pair.region, [&](Index n, Index c, Index row, Index col) {
    CHECK(plain[at++] == pair.from.view().at(n, c, row, col));
  });
}

TEST_CASE("a region that reaches out of its view is refused") {
  Tensor<float> tensor({{0, 1}, {0, 4}, {0, 5}, {0, 5}});
  std::vector<float> plain(100);
  CHECK_THROWS_AS(
      copy_out(View<const float>(tensor.view()), {{0, 1}, {0, 4}, {0, 5}, {1, 6}}, plain.data()),
      std::logic_error);
  CHECK_NOTHROW(
      copy_out(View<const float>(tensor.view()), {{0, 1}, {0, 4}, {3, 3}, {1, 6}}, plain.data()));
}

}  // namespace
