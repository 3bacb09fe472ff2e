// One pass of a convolution by oneDNN, in the layouts that it chooses itself.

#pragma once

#include <memory>

#include "bench/kernels/convolution_case.h"

namespace tessera::bench {

enum class OnednnAlgorithm { Direct, Winograd };
inline constexpr OnednnAlgorithm kOnednnAlgorithms[] = {OnednnAlgorithm::Direct,
                                                        OnednnAlgorithm::Winograd};

// "direct", "winograd"
[[nodiscard]] std::string_view name_of(OnednnAlgorithm algorithm);

// Its version, empty where this program was built without it.
[[nodiscard]] std::string onednn_version();

// Whether this oneDNN has the algorithm for this pass of this convolution, on this machine.
[[nodiscard]] bool applies(OnednnAlgorithm algorithm,
                           const ConvolutionCase& convolution,
                           Pass pass);

class OnednnConvolution {
 public:
  // The algorithm must apply.
  OnednnConvolution(const ConvolutionCase& convolution,
                    Pass pass,
                    OnednnAlgorithm algorithm,
                    const CaseValues& values);
  OnednnConvolution(const OnednnConvolution&) = delete;
  OnednnConvolution& operator=(const OnednnConvolution&) = delete;
  ~OnednnConvolution();

  // Assigns what the pass computes.
  void run();
  // What `run` computed, in plain order.
  [[nodiscard]] std::vector<float> result() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tessera::bench
