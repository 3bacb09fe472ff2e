#include "bench/kernels/candidate.h"

#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

#include "bench/kernels/onednn_convolution.h"
#include "bench/kernels/tessera_convolution.h"

namespace tessera::bench {

namespace {

// F(4x4, 3x3) in single precision differs by up to 2e-5 from sums by the definition, in the
// gradient of weights; anything wrong is of the order of 1.
constexpr double kLargestDifference = 2e-4;

OnednnAlgorithm algorithm_of(Method method) {
  return method == Method::Direct ? OnednnAlgorithm::Direct : OnednnAlgorithm::Winograd;
}

// Calls `use` with the candidate's convolution, of whichever type it is.
template <class Use>
void with_convolution(const Candidate& candidate, const CaseValues& values, Use use) {
  if (candidate.library == Library::Tessera) {
    TesseraConvolution<float> convolution(
        *candidate.convolution, candidate.pass, candidate.kernel, values);
    use(convolution);
  } else {
    OnednnConvolution convolution(
        *candidate.convolution, candidate.pass, algorithm_of(candidate.method), values);
    use(convolution);
  }
}

std::vector<float> result_of(const Candidate& candidate, const CaseValues& values) {
  std::vector<float> result;
  with_convolution(candidate, values, [&](auto& convolution) {
    convolution.run();
    result = convolution.result();
  });
  return result;
}

// |found - expected| / |expected|, Euclidean norms.
double relative_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(found[i]) - expected[i], 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / norm);
}

}  // namespace

std::string Candidate::name() const {
  return fmt::format("layer{}/{}/{}",
                     convolution->layer,
                     name_of(pass),
                     library == Library::Tessera
                         ? fmt::format("tessera/{}", partitioner::name_of(kernel))
                         : fmt::format("onednn/{}", name_of(algorithm_of(method))));
}

std::vector<Candidate> candidates(const std::vector<ConvolutionCase>& cases) {
  std::vector<Candidate> found;
  for (const ConvolutionCase& convolution : cases) {
    for (const Pass pass : kPasses) {
      if (pass == Pass::BackwardData && convolution.reads_image) {
        continue;
      }
      for (const engine::ConvolutionKernel kernel : convolution.kernels) {
        const bool direct = kernel == engine::ConvolutionKernel::Direct;
        found.push_back({&convolution,
                         pass,
                         Library::Tessera,
                         direct ? Method::Direct : Method::Winograd,
                         kernel});
      }
      for (const Method method : {Method::Direct, Method::Winograd}) {
        if (applies(algorithm_of(method), convolution, pass)) {
          found.push_back({&convolution, pass, Library::Onednn, method, {}});
        }
      }
    }
  }
  return found;
}

void check(const Candidate& candidate) {
  const CaseValues values = random_values(*candidate.convolution);
  const Candidate direct{.convolution = candidate.convolution, .pass = candidate.pass};
  const double difference =
      relative_difference(result_of(candidate, values), result_of(direct, values));
  if (!(difference <= kLargestDifference)) {
    throw std::runtime_error(
        fmt::format("{}: differs from the direct kernel by {:.1e}, {:.1e} are allowed",
                    candidate.name(),
                    difference,
                    kLargestDifference));
  }
}

void call(const Candidate& candidate, int times) {
  with_convolution(candidate, random_values(*candidate.convolution), [&](auto& convolution) {
    for (int i = 0; i < times; ++i) {
      convolution.run();
    }
  });
}

void measure(benchmark::State& state, const Candidate& candidate, double peak_flops_per_s) {
  using Clock = std::chrono::steady_clock;
  const CaseValues values = random_values(*candidate.convolution);
  double seconds = 0;
  with_convolution(candidate, values, [&](auto& convolution) {
    convolution.run();  // page faults
    const Clock::time_point begin = Clock::now();
    for ([[maybe_unused]] auto iteration : state) {
      convolution.run();
    }
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  });
  const double flops_per_s =
      candidate.convolution->flops() * static_cast<double>(state.iterations()) / seconds;
  state.counters["GFLOP/s"] = 1e-9 * flops_per_s;
  state.counters["peak_%"] = 100 * flops_per_s / peak_flops_per_s;
  state.counters["least_MB"] = 1e-6 * candidate.convolution->least_bytes();
}

}  // namespace tessera::bench
