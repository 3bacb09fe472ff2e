#include "partitioner/partition/kernels.h"

#include <string>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "partitioner/cfg/model_file.h"
#include "partitioner/partition/partition.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

Network convolutions(const std::vector<Convolution>& layers, Index side = 20) {
  Network network;
  network.image = {64, side, side};
  for (const Convolution& layer : layers) {
    add_layer(network, layer, {network.size() - 1});
  }
  return network;
}

}  // namespace

TEST_CASE("each kernel has a name of its own that reads back") {
  for (const ConvolutionKernel kernel : kConvolutionKernels) {
    CHECK(kernel_named(name_of(kernel)) == kernel);
  }
  CHECK(kernel_named("winograd") == std::nullopt);
  CHECK(kernel_rule_named("fast") == std::nullopt);
}

TEST_CASE("what keeps a kernel from a layer is named") {
  const Network network = convolutions({{.filters = 64, .size = 3, .padding = {1, 0}},
                                        {.filters = 64, .size = {3, 1}},
                                        {.filters = 64, .size = 3, .stride = 2, .padding = 1},
                                        {.filters = 64, .size = 3, .padding = 1, .groups = 2}});
  const auto why = [&](int layer) {
    return obstacle(ConvolutionKernel::Winograd2, network, layer).value_or("");
  };
  CHECK(why(0) == "has an unequal padding of 1x0");
  CHECK(why(1) == "has filters of 3x1");
  CHECK(why(2) == "has a stride of 2x2");
  CHECK(why(3) == "has 2 groups");
  CHECK_FALSE(obstacle(ConvolutionKernel::Direct, network, 0));
}

TEST_CASE("Winograd's kernels are for 3x3 convolutions of stride 1 without groups") {
  Network network = convolutions({{.filters = 64, .size = 3, .padding = 1},
                                  {.filters = 64, .size = 3, .stride = 2, .padding = 1},
                                  {.filters = 64, .size = 3, .padding = 1, .groups = 2},
                                  {.filters = 64, .size = 1},
                                  {.filters = 64, .size = 5}});
  add_layer(network, AvgPool{}, {4});
  for (int layer = 0; layer < network.size(); ++layer) {
    CAPTURE(layer);
    CHECK(applies(ConvolutionKernel::Winograd2, network, layer) == (layer == 0));
    CHECK(applies(ConvolutionKernel::Winograd4, network, layer) == (layer == 0));
    CHECK(applies(ConvolutionKernel::Direct, network, layer) == (layer < 5));
    CHECK(applies(ConvolutionKernel::Reference, network, layer) == (layer < 5));
  }
  Partition partition = single_tile(network);
  const auto refusal = [&] {
    return tests::input_error_of([&] { validate(partition, network, 1, "p.toml"); });
  };
  partition.kernels = {all_passes(ConvolutionKernel::Winograd4)};
  CHECK(refusal() == "");
  partition.kernels = {{}, {ConvolutionKernel::Direct, ConvolutionKernel::Winograd2}};
  CHECK(tests::has(refusal(), "p.toml: layer 1 cannot be computed by the kernel winograd2"));
  partition.kernels = {{}, {}, {}, {}, {}, all_passes(ConvolutionKernel::Reference)};
  CHECK(tests::has(refusal(), "layer 5 cannot be computed by the kernel reference"));
  partition.kernels.resize(7);
  CHECK(tests::has(refusal(), "kernels for layer 6: the network has 6 layers"));
}

TEST_CASE("the usual rule takes Winograd's kernels where there are channels enough") {
  const Network network = convolutions({{.filters = 64, .size = 3, .padding = 1},
                                        {.filters = 8, .size = 3, .padding = 1},
                                        {.filters = 64, .size = 3, .padding = 1},
                                        {.filters = 64, .size = 1}});
  const auto winograd = all_passes(ConvolutionKernel::Winograd4);
  const std::vector<ConvolutionKernels> usual{winograd};
  const std::vector<ConvolutionKernels> everywhere{winograd, winograd, winograd};
  const std::vector<ConvolutionKernels> reference(4, all_passes(ConvolutionKernel::Reference));
  CHECK(choose_kernels(network, KernelRule::Usual) == usual);
  CHECK(choose_kernels(network, KernelRule::Winograd) == everywhere);
  CHECK(choose_kernels(network, KernelRule::Direct).empty());
  CHECK(choose_kernels(network, KernelRule::Reference) == reference);
}

TEST_CASE("the usual rule takes smaller tiles on small maps and none on the smallest") {
  const auto usual_at = [](Index side) {
    const Network network = convolutions({{.filters = 64, .size = 3, .padding = 1}}, side);
    return choose_kernels(network, KernelRule::Usual);
  };
  const std::vector<ConvolutionKernels> small{all_passes(ConvolutionKernel::Winograd2)};
  const std::vector<ConvolutionKernels> large{all_passes(ConvolutionKernel::Winograd4)};
  CHECK(usual_at(5).empty());
  CHECK(usual_at(6) == small);
  CHECK(usual_at(11) == small);
  CHECK(usual_at(12) == large);
}

TEST_CASE("the usual rule takes Winograd's kernels of fewer channels on large maps") {
  const auto usual_at = [](Index filters, Index side) {
    const Network network = convolutions({{.filters = filters, .size = 3, .padding = 1}}, side);
    return choose_kernels(network, KernelRule::Usual);
  };
  const std::vector<ConvolutionKernels> winograd{all_passes(ConvolutionKernel::Winograd4)};
  CHECK(usual_at(16, 31).empty());
  CHECK(usual_at(16, 32) == winograd);
  CHECK(usual_at(15, 32).empty());
}
