#include "bench/kernels/convolution_case.h"

#include <fmt/format.h>

#include "engine/base/random.h"

namespace tessera::bench {

namespace {

constexpr std::uint64_t kSeed = 1;

std::vector<float> random_array(Index size, int layer, std::uint64_t which) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double uniform =
        engine::random_uniform(kSeed, static_cast<std::uint64_t>(layer), which, i);
    values[i] = static_cast<float>(2 * uniform - 1);
  }
  return values;
}

}  // namespace

std::string_view name_of(Pass pass) {
  switch (pass) {
    case Pass::Forward:
      return "forward";
    case Pass::BackwardData:
      return "backward_data";
    case Pass::BackwardWeights:
      return "backward_weights";
  }
  return "";
}

double ConvolutionCase::flops() const {
  return 2 * static_cast<double>(batch * output.volume()) * static_cast<double>(shape.row());
}

double ConvolutionCase::least_bytes() const {
  return sizeof(float) *
         static_cast<double>(batch * (input.volume() + output.volume()) + weights());
}

std::string ConvolutionCase::description() const {
  const auto by = [](const partitioner::PerAxis& numbers) {
    return fmt::format("{}x{}", numbers.rows, numbers.cols);
  };
  const std::string stride =
      shape.stride.is_square() ? fmt::format("{}", shape.stride.rows) : by(shape.stride);
  return fmt::format("{}{}{}, {} > {}, {}x{}",
                     by(shape.size),
                     shape.stride == 1 ? "" : " / " + stride,
                     shape.groups == 1 ? "" : fmt::format(" in {} groups", shape.groups),
                     shape.channels,
                     shape.filters,
                     output.rows,
                     output.cols);
}

std::vector<ConvolutionCase> convolution_cases(const partitioner::Network& network, Index batch) {
  std::vector<ConvolutionCase> cases;
  for (int layer = 0; layer < network.size(); ++layer) {
    const partitioner::LayerSpec& spec = network.layer(layer);
    const auto* convolution = std::get_if<partitioner::Convolution>(&spec.operation);
    if (convolution == nullptr) {
      continue;
    }
    const int map = spec.inputs[0];
    ConvolutionCase found{.layer = layer,
                          .reads_image = map == partitioner::kImage,
                          .batch = batch,
                          .shape = {.filters = convolution->filters,
                                    .channels = network.shape(map).channels,
                                    .size = convolution->size,
                                    .stride = convolution->stride,
                                    .padding = convolution->padding,
                                    .groups = convolution->groups},
                          .input = network.shape(map),
                          .output = spec.output,
                          .kernels = {}};
    for (const engine::ConvolutionKernel kernel : partitioner::kConvolutionKernels) {
      if (kernel != engine::ConvolutionKernel::Reference && applies(kernel, network, layer)) {
        found.kernels.push_back(kernel);
      }
    }
    cases.push_back(std::move(found));
  }
  return cases;
}

CaseValues random_values(const ConvolutionCase& convolution) {
  const Index batch = convolution.batch;
  return {
      .input = random_array(batch * convolution.input.volume(), convolution.layer, 0),
      .weight = random_array(convolution.weights(), convolution.layer, 1),
      .output_gradient = random_array(batch * convolution.output.volume(), convolution.layer, 2)};
}

}  // namespace tessera::bench
