// Batch normalisation over what each rank owns: to a rank its tile is what the whole batch is to
// one tile. Statistics over the whole batch are part of what all other tests compare.

#include "engine/layers/norm_stage.h"

#include <string>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include "tests/support/like_one_tile.h"
#include <doctest/doctest.h>

#include "engine/execution/parameters.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using partitioner::Activation;
using partitioner::MaxPool;
using partitioner::Partition;
using tests::chain;
using tests::convolution;
using tests::Cuts;
using tests::NamedTensor;
using tests::NamedTensors;
using tests::normalized;
using tests::ranks;

enum class Axis { Images = 0, Rows = 2 };  // of (N, C, H, W)

// A chain of layers, all of them cut along one axis, one part per rank.
struct CutChain {
  partitioner::MapShape image;
  Index batch = 1;
  std::vector<partitioner::Operation> layers;
  Axis axis = Axis::Images;
  partitioner::Cut pieces;
};

NamedTensor part_of(const NamedTensor& whole, Axis axis, const Range& range) {
  const auto cut = static_cast<std::size_t>(axis);
  Index inner = 1;  // values of one position along the axis
  for (std::size_t i = cut + 1; i < whole.shape.size(); ++i) {
    inner *= whole.shape[i];
  }
  NamedTensor part{whole.shape, {}};
  part.shape[cut] = range.size();
  const Index step = inner * whole.shape[cut];
  const Index size = static_cast<Index>(whole.values.size());
  for (Index at = range.begin * inner; at < size; at += step) {
    const double* const first = whole.values.data() + at;
    part.values.insert(part.values.end(), first, first + range.size() * inner);
  }
  return part;
}

// What one tile computes of a piece, with nothing else in the world.
NamedTensors alone(const CutChain& cut, const NamedTensors& in, const Range& range) {
  NamedTensors piece = in;
  for (const char* map : {"input", "output_gradient"}) {
    piece.at(map) = part_of(in.at(map), cut.axis, range);
  }
  partitioner::MapShape image = cut.image;
  image.rows = piece.at("input").shape[2];
  return tests::on_one_tile<double>(chain(image, cut.layers), piece);
}

// The maps of a piece are those of its own run.
void check_maps(const NamedTensors& found,
                const NamedTensors& of_piece,
                Axis axis,
                const Range& range) {
  NamedTensors maps;
  NamedTensors expected;
  for (const char* map : {"output", "input_gradient"}) {
    maps[map] = part_of(found.at(map), axis, range);
    expected[map] = of_piece.at(map);
  }
  const std::string wrong = tests::differences(maps, expected, tests::kTwoOrders);
  CHECK_MESSAGE(wrong.empty(), wrong, "from ", range.begin, " to ", range.end);
}

// Gradients of parameters are sums over the runs; of a running statistic each element is that of
// the rank that owns it. `of_ranks` is empty where a rank has no piece.
void check_parameters(const NamedTensors& found,
                      const std::vector<NamedTensors>& of_ranks,
                      const partitioner::Plan& plan) {
  NamedTensors parameters;
  NamedTensors expected;
  for (const partitioner::ParameterPlan& parameter : plan.parameters) {
    const std::string name = engine::parameter_name(parameter);
    parameters[name] = found.at(name);
    NamedTensor& total = expected[name];
    total = {found.at(name).shape, std::vector<double>(found.at(name).values.size())};
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      std::vector<Range> counted = parameter.owned[rank];
      if (partitioner::is_learnt(parameter) && !of_ranks[rank].empty()) {
        counted = {{0, static_cast<Index>(total.values.size())}};
      }
      for (const Range& run : counted) {
        for (Index i = run.begin; i < run.end; ++i) {
          const auto at = static_cast<std::size_t>(i);
          total.values[at] += of_ranks[rank].at(name).values[at];
        }
      }
    }
  }
  const std::string wrong = tests::differences(parameters, expected, tests::kTwoOrders);
  CHECK_MESSAGE(wrong.empty(), wrong);
}

void check_pieces_alone(const CutChain& cut) {
  const Communicator world = Communicator::world();
  const partitioner::Network network = chain(cut.image, cut.layers);
  const Cuts cuts =
      cut.axis == Axis::Images ? Cuts{cut.pieces, {}, {}, {}} : Cuts{{}, {}, cut.pieces, {}};
  const Partition partition = tests::fused(network, world.size(), cuts);
  const NamedTensors in = tests::random_tensors(network, cut.batch, 31);
  const NamedTensors found = engine::vector_jacobian_product<double>(
      {.network = network, .partition = partition, .batch_norm = engine::BatchNormMode::PerTile},
      in,
      world);
  if (world.rank() != 0) {
    return;
  }
  std::vector<NamedTensors> of_ranks(static_cast<std::size_t>(world.size()));
  for (std::size_t tile = 0; tile < partition.groups[0].ranks.size(); ++tile) {
    const Range range{cut.pieces.boundaries[tile], cut.pieces.boundaries[tile + 1]};
    if (!range.empty()) {
      const NamedTensors of_piece = alone(cut, in, range);
      check_maps(found, of_piece, cut.axis, range);
      of_ranks[static_cast<std::size_t>(partition.groups[0].ranks[tile])] = of_piece;
    }
  }
  check_parameters(found, of_ranks, make_plan(network, partition, cut.batch));
}

TEST_CASE(
    "with statistics of each tile, ranks that share out images compute as if each was alone") {
  const std::vector<partitioner::Operation> layers{normalized(convolution(5, 3)),
                                                   MaxPool{2, 2, 1},
                                                   convolution(6, 3, 1, Activation::Swish),
                                                   normalized(convolution(4, 3)),
                                                   normalized(convolution(3, 1))};
  // Two images per rank, and one more for the last.
  const Index batch = 2 * ranks() + 1;
  check_pieces_alone(
      {{3, 12, 14}, batch, layers, Axis::Images, tests::small_pieces(ranks(), 2, batch)});
  // Two pieces, however many ranks there are.
  check_pieces_alone({{3, 12, 14}, 4, layers, Axis::Images, tests::small_pieces(ranks(), 2, 4)});
}

TEST_CASE(
    "with statistics of each tile, rows that need no neighbours are normalised by themselves") {
  const Index rows = 5 * ranks() + 3;
  check_pieces_alone({{3, rows, 9},
                      2,
                      {normalized(convolution(6, 1)),
                       convolution(5, 1, 1, Activation::Tanh),
                       normalized(convolution(4, 1))},
                      Axis::Rows,
                      tests::small_pieces(ranks(), 5, rows)});
}

}  // namespace
