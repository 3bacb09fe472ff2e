#include "engine/ops/rearrange/rearrange.h"

#include <functional>
#include <numeric>
#include <vector>

#include "tests/support/cells_read.h"
#include "tests/support/pieces.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Tensor;
using engine::View;
using partitioner::kImage;
using partitioner::Network;
using tests::Draw;
using tests::PlainMap;

// A layer that takes each output cell from one input cell.
struct Mover {
  Network network;
  std::function<void(View<const double> in, const Region& region, View<double> out)> forward;
  std::function<void(
      View<const double> out_gradient, const Region& region, View<double> in_gradient, bool assign)>
      backward;
};

template <class Operation>
Mover permutation(const Operation& operation, const partitioner::MapShape& image) {
  Mover mover;
  mover.network.image = image;
  add_layer(mover.network, operation, {kImage});
  mover.forward = [=](auto in, const Region& region, auto out) {
    engine::permute_forward(operation, image, in, region, out);
  };
  mover.backward = [=](auto gradient, const Region& region, auto in, bool assign) {
    engine::permute_backward(operation, image, gradient, region, in, assign);
  };
  return mover;
}

Mover upsample(Index stride) {
  Mover mover;
  mover.network.image = {18, 4, 5};
  add_layer(mover.network, partitioner::Upsample{stride}, {kImage});
  mover.forward = [stride](auto in, const Region& region, auto out) {
    engine::copy_cells({0, 1, stride, 1}, 1.0, false, in, region, out);
  };
  mover.backward = [stride](auto gradient, const Region& region, auto in, bool assign) {
    engine::copy_cells_backward({0, 1, stride, 1}, 1.0, gradient, region, in, assign);
  };
  return mover;
}

std::vector<Mover> permutations() {
  using partitioner::ChannelShuffle;
  using partitioner::Reorg;
  using partitioner::SpaceToDepth;
  return {permutation(ChannelShuffle{2}, {6, 3, 4}),
          permutation(ChannelShuffle{3}, {42, 3, 4}),
          permutation(ChannelShuffle{2}, {512, 3, 4}),
          permutation(SpaceToDepth{2}, {3, 8, 6}),
          permutation(SpaceToDepth{3}, {3, 12, 9}),
          permutation(SpaceToDepth{2}, {16, 4, 6}),
          permutation(SpaceToDepth{2}, {20, 4, 2}),
          permutation(Reorg{2, false}, {8, 4, 6}),
          permutation(Reorg{3, false}, {18, 6, 9}),
          permutation(Reorg{2, true}, {8, 4, 6}),
          permutation(Reorg{3, true}, {18, 3, 2})};
}

std::vector<Mover> movers() {
  std::vector<Mover> all = permutations();
  all.push_back(upsample(2));
  all.push_back(upsample(3));
  return all;
}

TEST_CASE(
    "layers that move cells take each from where their definition says, on any part of the map") {
  for (const Mover& mover : movers()) {
    Draw draw(1);
    PlainMap in = tests::random_map(whole_map(mover.network, kImage, 2), 2);
    const Region whole = whole_map(mover.network, 0, 2);
    for (int i = 0; i < 30; ++i) {
      const Region region = i == 0 ? whole : tests::random_part(draw, whole);
      const Tensor<double> held =
          tests::tensor_of<double>(in, required_input(mover.network, 0, 0, region));
      Tensor<double> out(region);
      mover.forward(held.view(), region, out.view());
      Index wrong = 0;
      tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
        tests::for_each_cell_read(mover.network, 0, 0, {c, row, col}, [&](const tests::Cell& from) {
          wrong +=
              out.view().at(n, c, row, col) == in.at(n, from.channel, from.row, from.col) ? 0 : 1;
        });
      });
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("layers that move cells give gradients back to where the cells came from, and add") {
  for (const Mover& mover : movers()) {
    Draw draw(3);
    const Region whole = whole_map(mover.network, 0, 2);
    PlainMap gradient = tests::random_map(whole, 4);
    for (int i = 0; i < 30; ++i) {
      const Region region = i == 0 ? whole : tests::random_part(draw, whole);
      const Tensor<double> held = tests::tensor_of<double>(gradient, region);
      PlainMap expected(whole_map(mover.network, kImage, 2));
      std::fill(expected.values.begin(), expected.values.end(), 0.5);
      Tensor<double> found = tests::tensor_of<double>(expected, expected.region);
      tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
        tests::for_each_cell_read(mover.network, 0, 0, {c, row, col}, [&](const tests::Cell& to) {
          expected.at(n, to.channel, to.row, to.col) += gradient.at(n, c, row, col);
        });
      });
      mover.backward(held.view(), region, found.view(), false);
      CHECK(tests::relative_difference(
                View<const double>(found.view()), expected, expected.region) < 1e-14);
    }
  }
}

TEST_CASE("a gradient that is assigned is one that is added to zeros, and no other cell changes") {
  const Region map{{0, 2}, {0, 24}, {0, 6}, {0, 5}};
  for (const engine::CellMap& cells :
       {engine::CellMap{}, engine::CellMap{-5}, engine::CellMap{8}, engine::CellMap{0, 1, 2, 1}}) {
    for (const double factor : {1.0, 0.5}) {
      Draw draw(11);
      for (int i = 0; i < 30; ++i) {
        Region whole = map;
        whole.channels = {map.channels.begin - cells.channel_shift,
                          map.channels.end - cells.channel_shift};
        whole.rows.end *= cells.repeat;
        whole.cols.end *= cells.repeat;
        const Region region = i == 0 ? whole : tests::random_part(draw, whole);
        Tensor<double> from(region);
        std::size_t next = 0;
        const std::vector<double> values = tests::random_values(region.volume(), 12);
        tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
          from.view().at(n, c, row, col) = values[next++];
        });
        const View<const double> gradient = from.view();
        Tensor<double> expected(map);
        engine::copy_cells_backward(cells, factor, gradient, region, expected.view());
        Tensor<double> found(map);
        const auto source = [&](const Range& outs) {
          return Range{outs.begin / cells.repeat, (outs.end - 1) / cells.repeat + 1};
        };
        const Region assigned{region.images,
                              {region.channels.begin + cells.channel_shift,
                               region.channels.end + cells.channel_shift},
                              source(region.rows),
                              source(region.cols)};
        tests::for_each_cell(map, [&](Index n, Index c, Index row, Index col) {
          const Region cell{{n, n + 1}, {c, c + 1}, {row, row + 1}, {col, col + 1}};
          found.view().at(n, c, row, col) = 7;
          expected.view().at(n, c, row, col) += contains(assigned, cell) ? 0 : 7;
        });
        engine::copy_cells_backward(cells, factor, gradient, region, found.view(), true);
        Index wrong = 0;
        tests::for_each_cell(map, [&](Index n, Index c, Index row, Index col) {
          wrong += found.view().at(n, c, row, col) == expected.view().at(n, c, row, col) ? 0 : 1;
        });
        CHECK(wrong == 0);
      }
    }
  }
}

// Bilinear interpolation by its definition: two cells along each axis, clamped to the map.
struct Neighbour {
  Index cell = 0;
  double share = 0;
};
std::vector<Neighbour> neighbours(Index out, Index stride, Index cells) {
  const double place =
      std::max((static_cast<double>(out) + 0.5) / static_cast<double>(stride) - 0.5, 0.0);
  const auto first = static_cast<Index>(place);
  const double part = place - static_cast<double>(first);
  return {{first, 1 - part}, {std::min(first + 1, cells - 1), part}};
}

TEST_CASE("values between cells are those of the definition on any part, and their gradients add") {
  for (const Index stride : {1, 2, 3, 4}) {
    CAPTURE(stride);
    Network network;
    network.image = {18, 4, stride == 3 ? 1 : 5};
    add_layer(network, partitioner::Upsample{stride, 1.0, true}, {kImage});
    const engine::FinerGrid grid{stride, network.image.rows, network.image.cols};
    const Region whole = whole_map(network, 0, 2);
    PlainMap in = tests::random_map(whole_map(network, kImage, 2), 31);
    PlainMap gradient = tests::random_map(whole, 32);
    Draw draw(33);
    for (int i = 0; i < 20; ++i) {
      const Region region = i == 0 ? whole : tests::random_part(draw, whole);
      const Region cells = required_input(network, 0, 0, region);
      PlainMap expected(whole);
      PlainMap expected_gradient(in.region);
      tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
        for (const Neighbour& r : neighbours(row, stride, grid.rows)) {
          for (const Neighbour& x : neighbours(col, stride, grid.cols)) {
            expected.at(n, c, row, col) += -0.5 * r.share * x.share * in.at(n, c, r.cell, x.cell);
            expected_gradient.at(n, c, r.cell, x.cell) +=
                -0.5 * r.share * x.share * gradient.at(n, c, row, col);
          }
        }
      });
      Tensor<double> out(region);
      const Tensor<double> held = tests::tensor_of<double>(in, cells);
      engine::interpolate_forward(grid, -0.5, held.view(), region, out.view());
      CHECK(tests::relative_difference<double>(out.view(), expected, region) < 1e-14);
      Tensor<double> to(cells);
      const Tensor<double> from = tests::tensor_of<double>(gradient, region);
      engine::interpolate_backward(grid, -0.5, from.view(), region, cells, to.view());
      CHECK(tests::relative_difference<double>(to.view(), expected_gradient, cells) < 1e-14);
    }
  }
}

TEST_CASE("the sum of two maps is a copy of one to which the other is added, on any part") {
  const Region map{{0, 2}, {0, 24}, {0, 6}, {0, 5}};
  PlainMap numbers = tests::random_map(map, 21);
  const Tensor<double> first = tests::tensor_of<double>(numbers, map);
  numbers = tests::random_map(map, 22);
  const Tensor<double> second = tests::tensor_of<double>(numbers, map);
  Draw draw(23);
  for (int i = 0; i < 30; ++i) {
    const Region region = i == 0 ? map : tests::random_part(draw, map);
    Tensor<double> expected(map);
    engine::copy_cells({}, 1.0, false, first.view(), region, expected.view());
    engine::copy_cells({}, 0.25, true, second.view(), region, expected.view());
    Tensor<double> found(map);
    engine::add_cells(0.25, first.view(), second.view(), region, found.view());
    Index wrong = 0;
    tests::for_each_cell(map, [&](Index n, Index c, Index row, Index col) {
      wrong += found.view().at(n, c, row, col) == expected.view().at(n, c, row, col) ? 0 : 1;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("a permutation moves every number to a place of its own, and assigning moves it back") {
  for (const Mover& mover : permutations()) {
    const Region map = whole_map(mover.network, kImage, 2);
    PlainMap numbers = tests::random_map(map, 41);
    Tensor<double> moved(whole_map(mover.network, 0, 2));
    Tensor<double> back = tests::tensor_of<double>(numbers, map);
    mover.forward(back.view(), moved.region(), moved.view());
    std::fill(back.values().span().begin(), back.values().span().end(), 7);
    mover.backward(moved.view(), moved.region(), back.view(), true);
    CHECK(tests::relative_difference<double>(back.view(), numbers, map) == 0);
  }
}

}  // namespace
