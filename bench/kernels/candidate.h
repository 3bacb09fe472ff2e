// A pass of a convolution, and a library and an algorithm that compute it: what one line of the
// benchmark's output is about.

#pragma once

#include <benchmark/benchmark.h>

#include "bench/kernels/convolution_case.h"

namespace tessera::bench {

enum class Library { Tessera, Onednn };
enum class Method { Direct, Winograd };  // what is compared with what

struct Candidate {
  const ConvolutionCase* convolution = nullptr;
  Pass pass = Pass::Forward;
  Library library = Library::Tessera;
  Method method = Method::Direct;
  engine::ConvolutionKernel kernel = engine::ConvolutionKernel::Direct;  // if ours

  // "layer4/forward/tessera/winograd4"
  [[nodiscard]] std::string name() const;
};

// All that apply, those of one pass side by side. Borrows the cases.
[[nodiscard]] std::vector<Candidate> candidates(const std::vector<ConvolutionCase>& cases);

// Runs the candidate once. Throws std::runtime_error where its result is not what our direct kernel
// computes, up to the rounding of Winograd's algorithm in single precision.
void check(const Candidate& candidate);

// Runs it so many times.
void call(const Candidate& candidate, int times);

// Runs it as often as Google Benchmark says; counters are the rate in GFLOP/s by the definition of
// the convolution, its share of `peak_flops_per_s` in percent, and the least megabytes to move.
void measure(benchmark::State& state, const Candidate& candidate, double peak_flops_per_s);

}  // namespace tessera::bench
