#include "engine/probe/convolution_trial.h"

#include "engine/base/random.h"

namespace tessera::engine {

void fill_trial(float* values, Index count, std::uint64_t seed) {
  for (Index i = 0; i < count; ++i) {
    const std::uint64_t bits = mix_bits(seed * kGolden + static_cast<std::uint64_t>(i)) >> 40U;
    values[i] = 0.1F + static_cast<float>(bits) * 0x1.0p-24F;
  }
}

ProbeMaps::ProbeMaps(Index elements)
    : in(elements),
      out(elements),
      gradient(elements),
      weights(elements),
      weight_gradients(elements) {
  std::uint64_t seed = 1;
  for (ColdArray* array : {&in, &out, &gradient, &weights, &weight_gradients}) {
    fill_trial(array->all().data(), std::ssize(array->all()), seed++);
  }
}

void ProbeMaps::fit(ColdArray& array, Index size) {
  if (array.fit(size)) {
    fill_trial(array.all().data(), std::ssize(array.all()), 1);
  }
}

ConvolutionTrial::ConvolutionTrial(const ConvolutionPoint& trial, ProbeMaps& maps)
    : method_{trial_shape(trial), partitioner::all_passes(trial.kernel)},
      output_(trial_output(trial)),
      input_(trial_input(trial)),
      maps_(maps),
      scratch_size_(convolution_workspace(method_, output_, output_)),
      arena_({scratch_size_}),
      scratch_(arena_.take(scratch_size_)),
      weights_(trial.filters * method_.shape.row()) {
  ProbeMaps::fit(maps.in, blocked_volume(input_));
  ProbeMaps::fit(maps.gradient, blocked_volume(input_));
  ProbeMaps::fit(maps.out, blocked_volume(output_));
  ProbeMaps::fit(maps.weights, weights_);
  ProbeMaps::fit(maps.weight_gradients, weights_);
}

void ConvolutionTrial::forward() {
  convolution_forward<float>(method_,
                             maps_.in.next(input_),
                             {maps_.weights.next(weights_)},
                             {maps_.out.next(output_), output_},
                             scratch_);
}

void ConvolutionTrial::backward_data() {
  convolution_backward_data<float>(method_,
                                   maps_.out.next(output_),
                                   {maps_.weights.next(weights_), 0},
                                   output_,
                                   {maps_.gradient.next(input_), input_, true},
                                   scratch_);
}

void ConvolutionTrial::backward_weights() {
  convolution_backward_weights<float>(method_,
                                      maps_.in.next(input_),
                                      maps_.out.next(output_),
                                      output_,
                                      {maps_.weight_gradients.next(weights_)},
                                      scratch_);
}

}  // namespace tessera::engine
