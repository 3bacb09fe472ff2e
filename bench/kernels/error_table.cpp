#include "bench/kernels/error_table.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "bench/kernels/tessera_convolution.h"

namespace tessera::bench {

namespace {

using engine::ConvolutionKernel;

constexpr ConvolutionKernel kColumns[] = {
    ConvolutionKernel::Direct, ConvolutionKernel::Winograd2, ConvolutionKernel::Winograd4};

template <class T>
std::vector<T> computed(const ConvolutionCase& convolution,
                        Pass pass,
                        ConvolutionKernel kernel,
                        const CaseValues& values) {
  TesseraConvolution<T> program(convolution, pass, kernel, values);
  program.run();
  return program.result();
}

double relative_error(const std::vector<float>& values, const std::vector<double>& exact) {
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(values[i]) - exact[i], 2);
    length += std::pow(exact[i], 2);
  }
  return length == 0 ? 0 : std::sqrt(difference / length);
}

std::string row(const ConvolutionCase& convolution, Pass pass, const CaseValues& values) {
  const std::vector<double> exact =
      computed<double>(convolution, pass, ConvolutionKernel::Direct, values);
  std::string text =
      fmt::format("| {} | {} | {} |", convolution.layer, convolution.description(), name_of(pass));
  for (const ConvolutionKernel kernel : kColumns) {
    const auto& ours = convolution.kernels;
    const bool applies = std::find(ours.begin(), ours.end(), kernel) != ours.end();
    text += applies ? fmt::format(
                          " {:.1e} |",
                          relative_error(computed<float>(convolution, pass, kernel, values), exact))
                    : std::string(" |");
  }
  return text + '\n';
}

}  // namespace

std::string error_table(const std::vector<ConvolutionCase>& cases) {
  std::string text = "| layer | convolution | pass |";
  std::string line = "| ---: | --- | --- |";
  for (const ConvolutionKernel kernel : kColumns) {
    text += fmt::format(" {} |", name_of(kernel));
    line += " ---: |";
  }
  text += '\n' + line + '\n';
  for (const ConvolutionCase& convolution : cases) {
    const CaseValues values = random_values(convolution);
    for (const Pass pass : kPasses) {
      if (pass != Pass::BackwardData || !convolution.reads_image) {
        text += row(convolution, pass, values);
      }
    }
  }
  return text;
}

}  // namespace tessera::bench
