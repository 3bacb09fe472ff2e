// A convolution with all that its three passes read and write, to be done again and again. Maps and
// weights are others each time, so that no cache holds them.

#pragma once

#include "engine/probe/cold_array.h"
#include "engine/probe/probe_trials.h"
#include "engine/probe/trial_arena.h"

namespace tessera::engine {

// From 0.1 to 1.1. Above 0: nothing that is activated again and again may fade away, small numbers
// being slow.
void fill_trial(float* values, Index count, std::uint64_t seed);

// Elements of maps, what a step reads and keeps, what it makes of that, and gradients; and of
// weights.
struct ProbeMaps {
  explicit ProbeMaps(Index elements);

  // Before a trial takes so many elements of an array at once.
  static void fit(ColdArray& array, Index size);

  ColdArray in;  // nobody writes to
  ColdArray out;
  ColdArray gradient;
  ColdArray weights;
  ColdArray weight_gradients;
};

class ConvolutionTrial {
 public:
  // `maps` must outlive it.
  ConvolutionTrial(const ConvolutionPoint& trial, ProbeMaps& maps);

  void forward();
  void backward_data();
  void backward_weights();

 private:
  ConvolutionMethod method_;
  Region output_;
  Region input_;
  ProbeMaps& maps_;
  Index scratch_size_;
  TrialArena arena_;
  float* scratch_;
  Index weights_;
};

}  // namespace tessera::engine
