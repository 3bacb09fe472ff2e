// Connected layers against Eigen's products of matrices, in double precision.

#include "engine/ops/connected/connected.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/pieces.h"
#include <Eigen/Core>
#include <doctest/doctest.h>
#include <omp.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Tensor;
using engine::View;
using partitioner::MapShape;
using tests::Draw;
using tests::PlainMap;

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Relative to the largest value: sums of at most some hundred products in another order.
template <class T>
constexpr double kRounding = sizeof(T) == sizeof(double) ? 1e-13 : 2e-5;

struct Case {
  MapShape map;
  Index outputs;
  PlainMap in;
  PlainMap out_gradient;
  std::vector<double> weight;
  std::vector<double> bias;

  Case(const MapShape& shape, Index images, Index output_count, std::uint64_t seed)
      : map(shape),
        outputs(output_count),
        in(tests::random_map({{0, images}, {0, shape.channels}, {0, shape.rows}, {0, shape.cols}},
                             seed)),
        out_gradient(tests::random_map({{0, images}, {0, output_count}, {0, 1}, {0, 1}}, seed + 1)),
        weight(tests::random_values(output_count * shape.volume(), seed + 2)),
        bias(tests::random_values(output_count, seed + 3)) {}

  [[nodiscard]] const Region& output() const { return out_gradient.region; }
};

// Blocks of channels that are whole, narrow and neither; images in one run of pixels and in
// several.
template <class Visit>
void for_each_case(Visit visit) {
  std::uint64_t seed = 0;
  for (const Index outputs : {1, 5, 8, 10, 16, 17, 40}) {
    for (const Index channels : {1, 3, 8, 16, 20}) {
      for (const auto& [rows, cols] : {std::pair<Index, Index>{1, 1}, {3, 2}, {5, 7}}) {
        for (const Index images : {1, 5, 37}) {
          ++seed;
          visit(Case({channels, rows, cols}, images, outputs, seed), seed);
        }
      }
    }
  }
}

Eigen::Map<const Matrix> matrix(const std::vector<double>& values, Index rows, Index cols) {
  return {values.data(), static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(cols)};
}

Matrix images_by_features(const Case& of) {
  return matrix(of.in.values, of.in.region.images.size(), of.map.volume());
}

Matrix weights_of(const Case& of) {
  return matrix(of.weight, of.outputs, of.map.volume());
}

// The output's gradient where `region` has it, else 0.
Matrix gradient_on(const Case& of, const Region& region) {
  const auto size = [](Index count) { return static_cast<Eigen::Index>(count); };
  Matrix gradient = Matrix::Zero(size(of.output().images.size()), size(of.outputs));
  const auto all = matrix(of.out_gradient.values, of.output().images.size(), of.outputs);
  const auto block = [&](auto& from) {
    return from.block(size(region.images.begin),
                      size(region.channels.begin),
                      size(region.images.size()),
                      size(region.channels.size()));
  };
  block(gradient) = block(all);
  return gradient;
}

PlainMap plain(const Region& region, const Matrix& values) {
  PlainMap map(region);
  std::copy_n(values.data(), values.size(), map.values.begin());
  return map;
}

// The map's cells in a buffer whose every other number is none.
template <class T>
Tensor<T> buffer_of(PlainMap& map, const Region& held) {
  Tensor<T> tensor(held);
  std::fill_n(tensor.values().data(), tensor.values().size(), std::numeric_limits<T>::quiet_NaN());
  tests::for_each_cell(intersect(held, map.region), [&](Index n, Index c, Index row, Index col) {
    tensor.view().at(n, c, row, col) = static_cast<T>(map.at(n, c, row, col));
  });
  return tensor;
}

// Whether all cells of a region are what is expected; one that is not a number is not.
template <class T>
bool is_near(View<const T> found, PlainMap& expected, const Region& region) {
  double magnitude = 0;
  for (const double value : expected.values) {
    magnitude = std::max(magnitude, std::abs(value));
  }
  bool near = true;
  tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
    const double difference =
        static_cast<double>(found.at(n, c, row, col)) - expected.at(n, c, row, col);
    near = near && std::abs(difference) <= kRounding<T> * magnitude;
  });
  return near;
}

// What the layer reads for some images, and perhaps more.
Region held_input(const Case& of, const Range& images, Draw& draw) {
  Region held = of.in.region;
  if (draw.chance(0.5)) {
    held.images = images;
  }
  if (draw.chance(0.5)) {
    held.rows = {-1, held.rows.end + 2};
    held.cols = {-2, held.cols.end + 1};
  }
  return held;
}

template <class T>
std::vector<T> rows_of(const std::vector<double>& values, const Range& rows, Index row) {
  return {values.data() + rows.begin * row, values.data() + rows.end * row};
}

template <class T>
Tensor<T> forward(Case& of, const Region& region, Draw& draw, bool biased = true) {
  const Tensor<T> in = buffer_of<T>(of.in, held_input(of, region.images, draw));
  const auto weight = rows_of<T>(of.weight, region.channels, of.map.volume());
  const auto bias = rows_of<T>(of.bias, region.channels, 1);
  Tensor<T> out(draw.chance(0.5) ? region : of.output());
  std::fill_n(out.values().data(), out.values().size(), T{7});
  engine::connected_forward<T>(
      of.map, in.view(), weight.data(), biased ? bias.data() : nullptr, out.view(), region);
  return out;
}

template <class T>
struct Gradients {
  Tensor<T> in;
  std::vector<T> weight;  // of the outputs from `first` on
  Index first = 0;
};

template <class T>
Gradients<T> backward(Case& of, const Region& region, bool assign, T before, Draw& draw) {
  Gradients<T> result;
  result.first = draw.between(0, region.channels.begin);
  const auto weight = rows_of<T>(of.weight, {result.first, of.outputs}, of.map.volume());
  result.weight.assign(weight.size(), before);
  result.in = Tensor<T>(held_input(of, region.images, draw));
  std::fill_n(result.in.values().data(),
              result.in.values().size(),
              assign ? std::numeric_limits<T>::quiet_NaN() : before);
  const Tensor<T> in = buffer_of<T>(of.in, held_input(of, region.images, draw));
  const Tensor<T> gradient = buffer_of<T>(of.out_gradient, draw.chance(0.5) ? region : of.output());
  engine::connected_backward_data<T>(of.map,
                                     gradient.view(),
                                     {weight.data(), result.first},
                                     region,
                                     {result.in.view(), of.in.region, assign});
  engine::connected_backward_weights<T>(
      of.map, in.view(), gradient.view(), region, result.first, result.weight.data());
  return result;
}

Region some_part(Draw& draw, const Case& of) {
  return draw.chance(0.5) ? of.output() : tests::random_part(draw, of.output());
}

template <class T>
void check_forward(Case of, std::uint64_t seed) {
  Draw draw(seed);
  const bool biased = draw.chance(0.8);
  Matrix product = images_by_features(of) * weights_of(of).transpose();
  if (biased) {
    product.rowwise() += matrix(of.bias, 1, of.outputs).row(0);
  }
  PlainMap expected = plain(of.output(), product);
  const Region region = some_part(draw, of);
  const Tensor<T> found = forward<T>(of, region, draw, biased);
  CHECK_MESSAGE(is_near(found.view(), expected, region), seed);
  bool touched = false;
  tests::for_each_cell(found.region(), [&](Index n, Index c, Index row, Index col) {
    const bool inside =
        contains(region.images, {n, n + 1}) && contains(region.channels, {c, c + 1});
    touched = touched || (!inside && found.view().at(n, c, row, col) != T{7});
  });
  CHECK_MESSAGE(!touched, seed);
}

TEST_CASE("outputs are the product with the weights, on any part of them") {
  for_each_case([](const Case& of, std::uint64_t seed) {
    check_forward<double>(of, seed);
    check_forward<float>(of, seed);
  });
}

template <class T>
void check_backward(Case of, std::uint64_t seed) {
  Draw draw(seed);
  const Region region = some_part(draw, of);
  const bool assign = draw.chance(0.5);
  constexpr double kBefore = 0.25;
  Gradients<T> found = backward<T>(of, region, assign, static_cast<T>(kBefore), draw);

  const Matrix gradient = gradient_on(of, region);
  const Matrix to_data = (gradient * weights_of(of)).array() + (assign ? 0.0 : kBefore);
  PlainMap in_gradient = plain(of.in.region, to_data);
  CHECK_MESSAGE(
      is_near(
          View<const T>(found.in.view()), in_gradient, intersect(of.in.region, found.in.region())),
      seed);

  const Matrix to_weights = (gradient.transpose() * images_by_features(of)).array() + kBefore;
  const Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> weight(
      found.weight.data(),
      static_cast<Eigen::Index>(of.outputs - found.first),
      static_cast<Eigen::Index>(of.map.volume()));
  const Matrix difference = weight.template cast<double>() - to_weights.bottomRows(weight.rows());
  // Not a number, which a sum with a channel of nothing would be, is not less either.
  CHECK_MESSAGE(difference.cwiseAbs().maxCoeff<Eigen::PropagateNaN>() <=
                    kRounding<T> * to_weights.cwiseAbs().maxCoeff(),
                seed);
}

TEST_CASE("gradients are the products with the output's, of any part of the outputs, and added") {
  for_each_case([](const Case& of, std::uint64_t seed) {
    check_backward<double>(of, seed);
    check_backward<float>(of, seed);
  });
}

template <class T>
bool same_bits(View<const T> a, View<const T> b, const Region& region) {
  bool same = true;
  tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
    same = same && a.at(n, c, row, col) == b.at(n, c, row, col);
  });
  return same;
}

template <class T>
void check_pieces(Case of, std::uint64_t seed) {
  Draw draw(seed);
  const Tensor<T> whole = forward<T>(of, of.output(), draw);
  const Region region = tests::random_part(draw, of.output());
  const Tensor<T> part = forward<T>(of, region, draw);
  CHECK_MESSAGE(same_bits(part.view(), whole.view(), region), seed);

  Region outputs = of.output();
  outputs.channels = region.channels;
  const Gradients<T> all = backward<T>(of, of.output(), true, T{}, draw);
  const Gradients<T> some = backward<T>(of, outputs, true, T{}, draw);
  const auto row = [&](const Gradients<T>& gradients, Index k) {
    return gradients.weight.data() + (k - gradients.first) * of.map.volume();
  };
  CHECK_MESSAGE(std::equal(row(all, outputs.channels.begin),
                           row(all, outputs.channels.end),
                           row(some, outputs.channels.begin)),
                seed);
}

TEST_CASE("outputs and gradients of weights have the same bits whatever outputs come with them") {
  for_each_case([](const Case& of, std::uint64_t seed) {
    check_pieces<double>(of, seed);
    check_pieces<float>(of, seed);
  });
}

template <class T>
void check_threads(Case of, std::uint64_t seed) {
  const int before = omp_get_max_threads();
  const auto compute = [&](int threads) {
    omp_set_num_threads(threads);
    Draw draw(seed);  // the same buffers each time
    Tensor<T> out = forward<T>(of, of.output(), draw);
    return std::pair(std::move(out), backward<T>(of, of.output(), true, T{}, draw));
  };
  const auto alone = compute(1);
  for (const int threads : {2, 3}) {
    const auto shared = compute(threads);
    CHECK_MESSAGE(same_bits(shared.first.view(), alone.first.view(), of.output()), seed);
    CHECK_MESSAGE(same_bits(shared.second.in.view(),
                            alone.second.in.view(),
                            intersect(of.in.region, alone.second.in.region())),
                  seed);
    CHECK_MESSAGE(shared.second.weight == alone.second.weight, seed);
  }
  omp_set_num_threads(before);
}

TEST_CASE("a connected layer has the same bits with 1, 2 and 3 threads") {
  for_each_case([](const Case& of, std::uint64_t seed) {
    check_threads<double>(of, seed);
    check_threads<float>(of, seed);
  });
}

TEST_CASE("the gradient of images that nobody computes is assigned 0") {
  Case of({3, 2, 2}, 4, 5, 1);
  Draw draw(2);
  for (const Range& images : {Range{1, 3}, Range{2, 2}}) {
    Region region = of.output();
    region.images = images;
    const Tensor<double> gradient = buffer_of<double>(of.out_gradient, of.output());
    Tensor<double> in(of.in.region);
    std::fill_n(in.values().data(), in.values().size(), 7);
    engine::connected_backward_data<double>(
        of.map, gradient.view(), {of.weight.data(), 0}, region, {in.view(), of.in.region, true});
    PlainMap expected = plain(of.in.region, gradient_on(of, region) * weights_of(of));
    CHECK(is_near(View<const double>(in.view()), expected, of.in.region));
  }
}

}  // namespace
