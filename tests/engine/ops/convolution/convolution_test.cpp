#include "engine/ops/convolution/convolution.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "tests/support/pieces.h"
#include <doctest/doctest.h>
#include <omp.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Array;
using engine::ConvolutionShape;
using engine::Tensor;
using engine::View;
using tests::Draw;
using tests::PlainMap;

using engine::ConvolutionKernel;

// Relative to the largest value: sums of at most some thousand products in another order, and
// through Winograd's transforms some digits less.
template <class T>
double rounding(ConvolutionKernel kernel) {
  const double direct = sizeof(T) == sizeof(double) ? 1e-13 : 2e-5;
  return kernel == ConvolutionKernel::Winograd4 ? 10 * direct : direct;
}

// A convolution of a small random map, with everything that goes into it.
struct Case {
  ConvolutionKernel kernel;
  partitioner::Network network;
  ConvolutionShape shape;
  PlainMap in;
  std::vector<double> weight;
  std::vector<double> bias;
  PlainMap out_gradient;

  [[nodiscard]] Region output() const { return out_gradient.region; }
  [[nodiscard]] engine::ConvolutionMethod method() const {
    return {shape, partitioner::all_passes(kernel)};
  }
  [[nodiscard]] Region required(const Region& region) const {
    return required_input(network, 0, 0, region);
  }
};

// Filters and channels around the sizes of blocks: tails, whole blocks, several.
std::optional<partitioner::Network> random_convolution(Draw& draw, ConvolutionKernel kernel) {
  partitioner::Network network;
  const bool winograd = winograd_side(kernel) > 0;
  const bool depthwise = !winograd && draw.chance(0.15);
  const Index groups = winograd    ? 1
                       : depthwise ? draw.between(1, 40)
                                   : draw.among<Index>({1, 1, 1, 2, 3, 8, 20});
  const Index size = winograd ? 3 : draw.between(1, 7);
  const Index cols = winograd || draw.chance(0.5) ? size : draw.between(1, 7);
  const Index stride = winograd ? 1 : draw.between(1, 4);
  const Index padding = draw.between(0, size - 1);
  const bool square = cols == size;
  network.image = {groups * (depthwise ? 1 : draw.among<Index>({1, 2, 3, 5, 16, 17})),
                   draw.between(1, 15),
                   draw.between(1, 17)};
  try {
    add_layer(
        network,
        partitioner::Convolution{
            .filters = groups * (depthwise ? 1 : draw.among<Index>({1, 2, 3, 4, 7, 16, 19, 33})),
            .size = {size, cols},
            .stride = {stride, square ? stride : draw.between(1, 4)},
            .padding = {padding, square ? padding : draw.between(0, cols - 1)},
            .groups = groups,
            .more_padding = {draw.between(0, size) - padding, draw.between(0, 1)}},
        {partitioner::kImage});
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  return network;
}

Case case_of(const partitioner::Network& network,
             Index batch,
             std::uint64_t seed,
             ConvolutionKernel kernel) {
  const auto& layer = std::get<partitioner::Convolution>(network.layer(0).operation);
  const ConvolutionShape shape{
      layer.filters, network.image.channels, layer.size, layer.stride, layer.padding, layer.groups};
  return {kernel,
          network,
          shape,
          tests::random_map(whole_map(network, partitioner::kImage, batch), seed),
          tests::random_values(shape.filters * shape.row(), seed + 1),
          tests::random_values(shape.filters, seed + 2),
          tests::random_map(whole_map(network, 0, batch), seed + 3)};
}

Case random_case(std::uint64_t seed, ConvolutionKernel kernel) {
  Draw draw(seed);
  std::optional<partitioner::Network> network;
  while (!network) {
    network = random_convolution(draw, kernel);
  }
  return case_of(*network, draw.between(1, 3), seed, kernel);
}

// What direct kernels compute otherwise: a map of one channel and wide enough rows, or inputs whose
// channels are half a vector. Around the sizes where they begin and end to.
Case few_channels_case(std::uint64_t seed) {
  Draw draw(seed);
  partitioner::Network network;
  const bool plane = draw.chance(0.5);
  const Index size = plane ? draw.between(1, 8) : draw.between(2, 10);
  const Index cols = draw.chance(0.5) ? size : draw.between(1, 8);
  network.image = {plane ? 1 : draw.between(4, 10), draw.between(8, 14), draw.between(14, 70)};
  add_layer(network,
            partitioner::Convolution{.filters = plane ? draw.between(1, 10) : draw.between(1, 40),
                                     .size = {size, cols},
                                     .stride = plane ? 1 : draw.between(1, 4),
                                     .padding = {draw.between(size > 8 ? 1 : 0, size - 1),
                                                 draw.between(cols > 8 ? 1 : 0, cols - 1)}},
            {partitioner::kImage});
  return case_of(network, draw.between(1, 3), seed, ConvolutionKernel::Direct);
}

constexpr Index kManyChannels = 200;

// More channels than Winograd's kernels transform the filters of at once, with tails, and more
// tiles.
Case large_case(ConvolutionKernel kernel) {
  partitioner::Network network;
  network.image = {kManyChannels, 31, 30};
  add_layer(network,
            partitioner::Convolution{.filters = 70, .size = 3, .padding = 1},
            {partitioner::kImage});
  return case_of(network, 2, 1, kernel);
}

// More inputs than filters are in work at once from, forward or on the way back.
Case deep_case(ConvolutionKernel kernel, Index channels, Index filters) {
  partitioner::Network network;
  network.image = {channels, 9, 10};
  add_layer(network,
            partitioner::Convolution{.filters = filters, .size = 3, .padding = 1},
            {partitioner::kImage});
  return case_of(network, 1, 2, kernel);
}

// So many inputs and filters that these do not stay in memory, transformed, for a whole pass.
constexpr Index kNotKept = 370;

template <class T>
std::vector<T> rows_of(const std::vector<double>& values, const Range& rows, Index row) {
  return {values.data() + rows.begin * row, values.data() + rows.end * row};
}

template <class T>
Array<T> workspace_for(const Case& of, const Region& region) {
  return Array<T>(convolution_workspace(of.method(), region, region));
}

// A buffer that holds what `region` requires, and perhaps more.
template <class T>
Tensor<T> input_for(Case& of, const Region& region, Draw& draw) {
  Region held = of.required(region);
  if (draw.chance(0.5)) {
    held = hull(held, of.in.region);
  }
  return tests::tensor_of<T>(of.in, held);
}

template <class T>
Tensor<T> forward(Case& of, const Region& region, Draw& draw) {
  const Tensor<T> in = input_for<T>(of, region, draw);
  const auto weight = rows_of<T>(of.weight, region.channels, of.shape.row());
  const auto bias = rows_of<T>(of.bias, region.channels, 1);
  Tensor<T> out(draw.chance(0.5) ? region : of.output());
  auto workspace = workspace_for<T>(of, region);
  const bool prepared =
      draw.chance(0.5) &&
      convolution_prepare<T>(of.method(), weight.data(), region.channels.size(), workspace.data());
  convolution_forward<T>(of.method(),
                         in.view(),
                         {weight.data(), bias.data(), prepared},
                         {out.view(), region},
                         workspace.data());
  return out;
}

constexpr std::uint64_t kCases = 150;

// All of a large map, so that there is more than one part of its channels; else any part.
Region some_part(Draw& draw, const Case& of) {
  const bool large = of.shape.channels == kManyChannels;
  return large || draw.chance(0.3) ? of.output() : tests::random_part(draw, of.output());
}

template <class T>
void check_forward(Case of, std::uint64_t seed) {
  INFO(name_of(of.kernel), ", seed ", seed);
  Draw draw(seed + 1000);
  PlainMap expected(of.output());
  naive_convolution(of.shape, of.in, of.weight, of.bias, expected);
  const Region region = some_part(draw, of);
  const Tensor<T> found = forward<T>(of, region, draw);
  CHECK(tests::relative_difference(found.view(), expected, region) <= rounding<T>(of.kernel));
}

TEST_CASE("every kernel computes the naive convolution, on any part of the map") {
  for (const ConvolutionKernel kernel : partitioner::kConvolutionKernels) {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      check_forward<double>(random_case(seed, kernel), seed);
      check_forward<float>(random_case(seed, kernel), seed);
    }
  }
}

template <class T>
bool same_bits(View<const T> a, View<const T> b, const Region& region) {
  bool same = true;
  tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
    const T& x = a.at(n, c, row, col);
    const T& y = b.at(n, c, row, col);
    same = same && x == y && std::signbit(x) == std::signbit(y);
  });
  return same;
}

// Moves the ends of a range to multiples of `side`, or to the edge of the map.
Range on_grid(const Range& range, Index side, Index extent) {
  return {range.begin / side * side, std::min((range.end + side - 1) / side * side, extent)};
}

// A part of the map whose cells have the same bits as in the whole.
Region comparable_part(Draw& draw, const Case& of) {
  Region region = tests::random_part(draw, of.output());
  const Index side = winograd_side(of.kernel);
  if (side > 0 && !region.empty()) {
    region.rows = on_grid(region.rows, side, of.output().rows.end);
    region.cols = on_grid(region.cols, side, of.output().cols.end);
  }
  return region;
}

template <class T>
void check_pieces(Case of, std::uint64_t seed) {
  Draw draw(seed + 2000);
  const Tensor<T> whole = forward<T>(of, of.output(), draw);
  for (int piece = 0; piece < 4; ++piece) {
    const Region region = comparable_part(draw, of);
    const Tensor<T> part = forward<T>(of, region, draw);
    CHECK_MESSAGE(
        same_bits(part.view(), whole.view(), region), name_of(of.kernel), ", seed ", seed);
  }
}

template <class T>
void check_pieces(ConvolutionKernel kernel) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    check_pieces<T>(random_case(seed, kernel), seed);
  }
}

TEST_CASE("a cell has the same bits whatever part of the map is computed with it") {
  check_pieces<double>(ConvolutionKernel::Direct);
  check_pieces<float>(ConvolutionKernel::Direct);
}

TEST_CASE("a cell has the same bits by Winograd's kernels where cuts lie on their grid") {
  check_pieces<float>(ConvolutionKernel::Winograd2);
  check_pieces<float>(ConvolutionKernel::Winograd4);
}

template <class T>
struct Gradients {
  Tensor<T> in;
  std::vector<T> weight;  // of the filters from `first` on
  Index first = 0;
  bool assigned = false;  // the weights', of the region's channels
};

// Gradients are added to what is there, `before` everywhere, or assigned where kernels can.
template <class T>
Gradients<T> backward(Case& of, const Region& region, T before, Draw& draw, bool assign = false) {
  Gradients<T> result;
  result.first = draw.between(0, region.channels.begin);
  const Range held{result.first, of.shape.filters};
  const auto weight = rows_of<T>(of.weight, held, of.shape.row());
  result.weight.assign(weight.size(), before);
  result.in = input_for<T>(of, region, draw);
  std::fill_n(result.in.values().data(), result.in.values().size(), before);
  const Tensor<T> in = input_for<T>(of, region, draw);
  const Tensor<T> gradient =
      tests::tensor_of<T>(of.out_gradient, draw.chance(0.5) ? region : of.output());
  auto workspace = workspace_for<T>(of, region);
  result.assigned =
      assign && engine::assigns_all_weights<T>(of.method(), in.view(), gradient.view(), region);
  convolution_backward_weights(of.method(),
                               in.view(),
                               gradient.view(),
                               region,
                               {result.weight.data(), result.first, result.assigned},
                               workspace.data());
  convolution_backward_data<T>(of.method(),
                               gradient.view(),
                               {weight.data(), result.first},
                               region,
                               {result.in.view(), of.in.region, assign},
                               workspace.data());
  return result;
}

template <class T>
void check_backward(Case of, std::uint64_t seed) {
  INFO(name_of(of.kernel), ", seed ", seed);
  Draw draw(seed + 3000);
  const Region region = some_part(draw, of);
  constexpr double kBefore = 0.25;
  const bool assign = draw.chance(0.5);
  Gradients<T> found = backward<T>(of, region, static_cast<T>(kBefore), draw, assign);
  PlainMap in_gradient(of.in.region);
  std::vector<double> weight_gradient(of.weight.size());
  naive_convolution_backward(
      of.shape, region, of.in, of.weight, of.out_gradient, in_gradient, weight_gradient);
  for (double& value : in_gradient.values) {
    value += assign ? 0 : kBefore;
  }
  const Region inside = intersect(of.in.region, found.in.region());
  CHECK(tests::relative_difference(View<const T>(found.in.view()), in_gradient, inside) <=
        rounding<T>(of.kernel));
  double difference = 0;
  double magnitude = 1;
  for (std::size_t i = 0; i < found.weight.size(); ++i) {
    const Index filter = found.first + static_cast<Index>(i) / of.shape.row();
    const bool assigned = found.assigned && contains(region.channels, {filter, filter + 1});
    const double expected =
        (assigned ? 0 : kBefore) +
        weight_gradient[static_cast<std::size_t>(found.first * of.shape.row()) + i];
    difference = std::max(difference, std::abs(static_cast<double>(found.weight[i]) - expected));
    magnitude = std::max(magnitude, std::abs(expected));
  }
  CHECK(difference <= rounding<T>(of.kernel) * magnitude);
}

TEST_CASE("every kernel computes the naive convolution's gradients, and adds them") {
  for (const ConvolutionKernel kernel : partitioner::kConvolutionKernels) {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      check_backward<double>(random_case(seed, kernel), seed);
      check_backward<float>(random_case(seed, kernel), seed);
    }
  }
}

TEST_CASE(
    "direct kernels compute convolutions of few channels, and cells have the same bits in parts") {
  for (std::uint64_t seed = 0; seed < 2 * kCases; ++seed) {
    check_forward<double>(few_channels_case(seed), seed);
    check_forward<float>(few_channels_case(seed), seed);
    check_backward<double>(few_channels_case(seed), seed);
    check_backward<float>(few_channels_case(seed), seed);
    check_pieces<float>(few_channels_case(seed), seed);
  }
}

// The gradient of the weights out of a gradient that is `made` of another map, or of the same one
// in memory.
template <class T>
std::vector<T> weight_gradient(Case& of, const Region& region, bool made, const Draw& same_draw) {
  Draw draw = same_draw;
  const Tensor<T> in = input_for<T>(of, region, draw);
  Tensor<T> gradient = tests::tensor_of<T>(of.out_gradient, of.output());
  std::vector<T> weights(of.weight.size(), T(0.25));
  if (!made) {
    auto workspace = workspace_for<T>(of, region);
    convolution_backward_weights<T>(
        of.method(), in.view(), gradient.view(), region, {weights.data()}, workspace.data());
    return weights;
  }
  for (T& value : gradient.values().span()) {
    value *= 2;
  }
  const View<const T> doubled = gradient.view();
  const auto halve = [&](const Range& run, Index n, Index row, const Range& cols, T* to) {
    CHECK(contains(region, {{n, n + 1}, run, {row, row + 1}, cols}));
    const T* from = doubled.cell(n, row, cols.begin) + doubled.channel_offset(run.begin);
    std::transform(from, from + cols.size() * doubled.block, to, [](T value) { return value / 2; });
  };
  convolution_backward_weights<T>(
      of.method(), in.view(), engine::MadeGradient<T>{doubled, halve}, region, {weights.data()});
  return weights;
}

// Whether the case's kernels take such gradients.
template <class T>
bool check_made_gradient(Case of, std::uint64_t seed) {
  INFO(name_of(of.kernel), ", seed ", seed);
  Draw draw(seed + 4000);
  Region region = some_part(draw, of);
  region.channels = of.output().channels;
  const Tensor<T> in = input_for<T>(of, region, draw);
  const Tensor<T> gradient(of.output());
  if (!engine::takes_made_gradient<T>(of.method(), in.view(), gradient.view(), region)) {
    return false;
  }
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<T> expected = weight_gradient<T>(of, region, false, draw);
  const std::vector<T> found = weight_gradient<T>(of, region, true, draw);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(rounding<T>(of.kernel)).scale(10));
  }
  for (const int threads : {2, 3}) {
    omp_set_num_threads(threads);
    CHECK(weight_gradient<T>(of, region, true, draw) == found);
  }
  omp_set_num_threads(before);
  return true;
}

TEST_CASE("gradients of weights are the same where those of the output are made on the way") {
  int taken = 0;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    for (const ConvolutionKernel kernel : partitioner::kConvolutionKernels) {
      taken += check_made_gradient<float>(random_case(seed, kernel), seed) ? 1 : 0;
      taken += check_made_gradient<double>(random_case(seed, kernel), seed) ? 1 : 0;
    }
    taken += check_made_gradient<float>(few_channels_case(seed), seed) ? 1 : 0;
  }
  CHECK(taken >= 100);
}

TEST_CASE("Winograd's kernels compute layers of many channels part by part") {
  CHECK(!partitioner::keeps_winograd_filters(2, kNotKept, kNotKept));
  for (const ConvolutionKernel kernel :
       {ConvolutionKernel::Winograd2, ConvolutionKernel::Winograd4}) {
    check_forward<double>(large_case(kernel), 0);
    check_forward<float>(large_case(kernel), 0);
    check_backward<double>(large_case(kernel), 0);
    check_backward<float>(large_case(kernel), 0);
    for (const auto& [channels, filters] :
         {std::pair<Index, Index>{661, 40}, {40, 661}, {kNotKept, kNotKept}}) {
      check_forward<double>(deep_case(kernel, channels, filters), 0);
      check_forward<float>(deep_case(kernel, channels, filters), 0);
      check_backward<double>(deep_case(kernel, channels, filters), 0);
      check_backward<float>(deep_case(kernel, channels, filters), 0);
    }
  }
}

TEST_CASE("Winograd's kernels take no more scratch for some rows and columns, and less for few") {
  for (const ConvolutionKernel kernel :
       {ConvolutionKernel::Winograd2, ConvolutionKernel::Winograd4}) {
    for (const Case& of : {large_case(kernel), deep_case(kernel, 661, 40)}) {
      const Region all = of.output();
      const Index needed = convolution_workspace(of.method(), all, all);
      Draw draw(7);
      for (int i = 0; i < 50; ++i) {
        Region part = tests::random_part(draw, all);
        part.channels = all.channels;
        CHECK(convolution_workspace(of.method(), part, part) <= needed);
      }
      const Region cell{{0, 1}, all.channels, {4, 5}, {4, 5}};
      CHECK(convolution_workspace(of.method(), cell, cell) < needed);
    }
  }
}

TEST_CASE("direct kernels go over large gradients some rows at a time") {
  for (const auto& [size, stride, rows] :
       {std::tuple<Index, Index, Index>{3, 1, 261}, {4, 3, 781}, {2, 3, 790}}) {
    partitioner::Network network;
    network.image = {1, rows, rows + 3};
    add_layer(network,
              partitioner::Convolution{
                  .filters = 16, .size = size, .stride = stride, .padding = size / 2},
              {partitioner::kImage});
    const Case large = case_of(network, 1, 4, ConvolutionKernel::Direct);
    check_backward<double>(large, 0);
    check_backward<float>(large, 0);
  }
}

TEST_CASE("gradients that fall outside the image are dropped") {
  Case of = random_case(5, ConvolutionKernel::Direct);
  Draw draw(6);
  Gradients<double> found = backward<double>(of, of.output(), 0.0, draw);
  tests::for_each_cell(found.in.region(), [&](Index n, Index c, Index row, Index col) {
    if (!of.in.holds(row, col)) {
      CHECK(found.in.view().at(n, c, row, col) == 0);
    }
  });
}

// Tiles enough for threads to have runs of them apart, in rows that belong to several.
Case wide_case(ConvolutionKernel kernel) {
  partitioner::Network network;
  network.image = {20, 37, 150};
  add_layer(network,
            partitioner::Convolution{.filters = 40, .size = 3, .padding = 1},
            {partitioner::kImage});
  return case_of(network, 2, 3, kernel);
}

Case case_for_threads(std::uint64_t seed, ConvolutionKernel kernel) {
  if (winograd_side(kernel) > 0 && seed < 3) {
    return seed == 0   ? large_case(kernel)
           : seed == 1 ? wide_case(kernel)
                       : deep_case(kernel, kNotKept, kNotKept);
  }
  const bool few_channels = kernel == ConvolutionKernel::Direct && seed % 2 == 1;
  return few_channels ? few_channels_case(seed) : random_case(seed, kernel);
}

struct BothWays {
  Tensor<float> out;
  Gradients<float> gradients;
};

BothWays both_ways(Case& of, std::uint64_t seed) {
  Draw draw(seed);  // the same buffers each time
  Tensor<float> out = forward<float>(of, of.output(), draw);
  return {std::move(out), backward<float>(of, of.output(), 0.0F, draw)};
}

void check_same(BothWays& a, BothWays& b) {
  const Region& whole = a.out.region();
  CHECK(same_bits(View<const float>(a.out.view()), View<const float>(b.out.view()), whole));
  const Region& in = a.gradients.in.region();
  CHECK(same_bits(
      View<const float>(a.gradients.in.view()), View<const float>(b.gradients.in.view()), in));
  CHECK(a.gradients.weight == b.gradients.weight);
}

void check_threads(ConvolutionKernel kernel) {
  const int before = omp_get_max_threads();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Case of = case_for_threads(seed, kernel);
    omp_set_num_threads(1);
    BothWays expected = both_ways(of, seed);
    for (const int threads : {2, 3, 4}) {
      omp_set_num_threads(threads);
      BothWays found = both_ways(of, seed);
      check_same(found, expected);
    }
  }
  omp_set_num_threads(before);
}

TEST_CASE("a convolution has the same bits with 1 to 4 threads, forward and backward") {
  for (const ConvolutionKernel kernel : partitioner::kConvolutionKernels) {
    check_threads(kernel);
  }
}

// Every line that a forward pass says is done, with what its cells were then.
struct DoneLine {
  Range channels;
  Index image;
  Index row;
  std::vector<float> cells;
};

std::vector<DoneLine> done_lines(Case& of, Tensor<float>& out) {
  const Region region = of.output();
  const Tensor<float> in = tests::tensor_of<float>(of.in, of.required(region));
  const auto weight = rows_of<float>(of.weight, region.channels, of.shape.row());
  auto workspace = workspace_for<float>(of, region);
  std::vector<DoneLine> lines;
  const engine::LineDone done = [&](const Range& channels, Index image, const Range& rows) {
    for (Index row = rows.begin; row < rows.end; ++row) {
      DoneLine line{channels, image, row, {}};
      for (Index c = channels.begin; c < channels.end; ++c) {
        for (Index col = region.cols.begin; col < region.cols.end; ++col) {
          line.cells.push_back(out.view().at(image, c, row, col));
        }
      }
#pragma omp critical(done_lines)
      lines.push_back(line);
    }
  };
  convolution_forward<float>(
      of.method(), in.view(), {weight.data()}, {out.view(), region, done}, workspace.data());
  return lines;
}

void check_done_lines(Case of, int threads) {
  INFO(name_of(of.kernel), ", ", threads, " threads");
  const Region region = of.output();
  Tensor<float> out(region);
  std::fill_n(out.values().data(), out.values().size(), std::nanf(""));
  const std::vector<DoneLine> lines = done_lines(of, out);
  Index cells = 0;
  for (const DoneLine& line : lines) {
    Index at = 0;
    bool same = true;
    for (Index c = line.channels.begin; c < line.channels.end; ++c) {
      for (Index col = region.cols.begin; col < region.cols.end; ++col) {
        same = same && line.cells[static_cast<std::size_t>(at++)] ==
                           out.view().at(line.image, c, line.row, col);
      }
    }
    CHECK(same);
    cells += at;
  }
  const auto order = [](const DoneLine& a, const DoneLine& b) {
    return std::tuple(a.image, a.row, a.channels.begin) <
           std::tuple(b.image, b.row, b.channels.begin);
  };
  const std::set<DoneLine, decltype(order)> distinct(lines.begin(), lines.end(), order);
  CHECK(distinct.size() == lines.size());
  CHECK(cells == region.volume());
}

TEST_CASE("each line is done once, when all its cells are there") {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 3, 4, 7}) {
    omp_set_num_threads(threads);
    check_done_lines(wide_case(ConvolutionKernel::Direct), threads);
    check_done_lines(wide_case(ConvolutionKernel::Winograd2), threads);
    check_done_lines(wide_case(ConvolutionKernel::Winograd4), threads);
    check_done_lines(large_case(ConvolutionKernel::Winograd4), threads);
    check_done_lines(deep_case(ConvolutionKernel::Winograd4, kNotKept, kNotKept), threads);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      check_done_lines(few_channels_case(seed), threads);
    }
  }
  omp_set_num_threads(before);
}

}  // namespace
