#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/pieces.h"
#include <doctest/doctest.h>
#include <omp.h>

#include "engine/ops/convolution/convolution.h"
#include "engine/ops/pool/pool.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::ArgmaxOffset;
using engine::ConvolutionMethod;
using engine::Tensor;
using partitioner::ConvolutionKernel;
using partitioner::MaxPool;
using partitioner::Network;
using tests::Draw;
using tests::PlainMap;

constexpr std::uint64_t kPairs = 200;
constexpr Index kImages = 3;

// A convolution of few channels and a max-pool behind it, one that is refused left out.
Network random_pair(Draw& draw) {
  while (true) {
    Network network;
    network.image = {draw.between(1, 16), draw.between(1, 40), draw.between(1, 40)};
    try {
      add_layer(network,
                partitioner::Convolution{.filters = draw.between(1, 20),
                                         .size = {draw.between(1, 7), draw.between(1, 7)},
                                         .stride = {draw.between(1, 4), draw.between(1, 4)},
                                         .padding = {draw.between(0, 3), draw.between(0, 3)},
                                         .activation = partitioner::Activation::Tanh},
                {partitioner::kImage});
      const Index side = draw.between(2, 4);
      add_layer(network, MaxPool{side, side, draw.between(0, side - 1)}, {0});
    } catch (const std::invalid_argument&) {
      continue;
    }
    if (weights_from_argmax(ConvolutionKernel::Direct, network, 0)) {
      return network;
    }
  }
}

// What a pool makes of random outputs, and gradients of part of its windows.
template <class T>
struct Pool {
  engine::PoolSite site;
  Tensor<ArgmaxOffset> argmax;
  Tensor<T> gradient;

  Pool(const Network& network, Draw& draw, std::uint64_t seed)
      : site{std::get<MaxPool>(network.layer(1).operation),
             whole_map(network, 0, kImages),
             tests::random_part(draw, whole_map(network, 1, kImages))} {
    site.region.images = {0, kImages};
    site.region.channels = site.map.channels;
    argmax = Tensor<ArgmaxOffset>(site.region);
    PlainMap outputs = tests::random_map(site.map, seed);
    PlainMap gradients = tests::random_map(whole_map(network, 1, kImages), seed + 1);
    Tensor<T> values(site.region);
    max_pool_forward<T>(
        site, tests::tensor_of<T>(outputs, site.map).view(), {values.view(), argmax.view()});
    gradient = tests::tensor_of<T>(gradients, site.region);
  }

  engine::ArgmaxGradient<T> argmax_gradient() {
    return {site, std::as_const(gradient).view(), std::as_const(argmax).view()};
  }
};

template <class T>
void check_weights(const Network& network, std::uint64_t seed, double precision) {
  INFO("seed ", seed);
  Draw draw(seed + 1000);
  const auto& convolution = std::get<partitioner::Convolution>(network.layer(0).operation);
  const Index channels = network.image.channels;
  const ConvolutionMethod method{
      {convolution.filters, channels, convolution.size, convolution.stride, convolution.padding},
      {}};
  Pool<T> pool(network, draw, seed + 100);
  Region cells = tests::random_part(draw, pool.site.map);  // of the output, through windows
  PlainMap image = tests::random_map(whole_map(network, partitioner::kImage, kImages), seed + 200);
  const Tensor<T> in = tests::tensor_of<T>(image, required_input(network, 0, 0, cells));

  Tensor<T> dense(pool.site.map);
  max_pool_backward<T>(pool.site,
                       std::as_const(pool.gradient).view(),
                       std::as_const(pool.argmax).view(),
                       dense.view());
  const auto weights = static_cast<std::size_t>(convolution.filters * method.shape.row());
  std::vector<T> expected(weights, T(0.5));
  convolution_backward_weights<T>(
      method, in.view(), std::as_const(dense).view(), cells, {expected.data()}, nullptr);
  std::vector<T> found(weights, T(0.5));
  convolution_backward_weights<T>(method, in.view(), pool.argmax_gradient(), cells, {found.data()});
  for (std::size_t i = 0; i < weights; ++i) {
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(precision).scale(100));
  }
  std::vector<T> of_cells(weights, T(0.5));
  const engine::ArgmaxGradient<T> by_cell{pool.site,
                                          std::as_const(dense).view(),
                                          pool.argmax_gradient().argmax,
                                          engine::GradientOf::Cells};
  convolution_backward_weights<T>(method, in.view(), by_cell, cells, {of_cells.data()});
  CHECK(of_cells == found);
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    std::vector<T> again(weights, T(0.5));
    convolution_backward_weights<T>(
        method, in.view(), pool.argmax_gradient(), cells, {again.data()});
    CHECK(again == found);
  }
  omp_set_num_threads(before);
}

TEST_CASE("gradients of weights from a pool's argmax are those of all outputs") {
  for (std::uint64_t seed = 0; seed < kPairs; ++seed) {
    Draw draw(seed);
    const Network network = random_pair(draw);
    check_weights<double>(network, seed, 1e-13);
    check_weights<float>(network, seed, 1e-6);
  }
}

TEST_CASE("wide rows of windows are summed some columns at a time") {
  Network network;
  network.image = {8, 9, 900};
  add_layer(network,
            partitioner::Convolution{.filters = 3, .size = 5, .padding = 2},
            {partitioner::kImage});
  add_layer(network, MaxPool{2, 2, 1}, {0});
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    check_weights<double>(network, seed, 1e-13);
  }
}

TEST_CASE(
    "weights' gradients come from the argmax where channels are few and only an activation is "
    "between") {
  const auto pair = [](Index channels, const partitioner::Convolution& convolution, MaxPool pool) {
    Network network;
    network.image = {channels, 12, 12};
    add_layer(network, convolution, {partitioner::kImage});
    add_layer(network, pool, {0});
    return network;
  };
  const partitioner::Convolution usual{.filters = 4, .size = 3, .padding = 1};
  const auto takes = [](const Network& network, ConvolutionKernel kernel) {
    return weights_from_argmax(kernel, network, 0);
  };
  CHECK(takes(pair(3, usual, {2, 2, 0}), ConvolutionKernel::Direct));
  CHECK(!takes(pair(3, usual, {2, 2, 0}), ConvolutionKernel::Winograd4));
  CHECK(!takes(pair(3, usual, {2, 2, 0}), ConvolutionKernel::Reference));
  CHECK(!takes(pair(9, usual, {2, 2, 0}), ConvolutionKernel::Direct));
  CHECK(!takes(pair(8, {.filters = 4, .size = 6}, {2, 2, 0}), ConvolutionKernel::Direct));
  partitioner::Convolution normalized = usual;
  normalized.batch_normalize = true;
  CHECK(!takes(pair(3, normalized, {2, 2, 0}), ConvolutionKernel::Direct));
}

}  // namespace
