// Takes the place of onednn_convolution.cpp where oneDNN is not installed: nothing applies.

#include "bench/kernels/onednn_convolution.h"

#include "partitioner/base/errors.h"

namespace tessera::bench {

std::string_view name_of(OnednnAlgorithm /*algorithm*/) {
  return "";
}

std::string onednn_version() {
  return "";
}

bool applies(OnednnAlgorithm /*algorithm*/, const ConvolutionCase& /*convolution*/, Pass /*pass*/) {
  return false;
}

struct OnednnConvolution::Parts {};

OnednnConvolution::OnednnConvolution(const ConvolutionCase& /*convolution*/,
                                     Pass /*pass*/,
                                     OnednnAlgorithm /*algorithm*/,
                                     const CaseValues& /*values*/) {
  expects(false, "the program was built with oneDNN");
}

OnednnConvolution::~OnednnConvolution() = default;

void OnednnConvolution::run() {}

std::vector<float> OnednnConvolution::result() const {
  return {};
}

}  // namespace tessera::bench
