// Stochastic gradient descent with momentum, and Adam (Kingma, Ba 2015), as Darknet has them:
// weight decay is part of the gradient, and only weights decay.
//
//   momentum:  v = momentum * v + g,  w = w - rate * v
//   Nesterov:  the same v,  w = w - rate * (g + momentum * v)
//   Adam:      m, v running means of g and g^2,  w = w - rate * m' / (sqrt(v') + epsilon),
//   corrected for their start at 0
//
// AdamW (Loshchilov, Hutter 2019) leaves the decay out of the gradient, and shrinks weights to
// (1 - rate * decay) of themselves in each step.
//
// A layer may have a factor of its own for the rate, and steps or parameters in which it is held:
// then nothing of it changes, its state included (partitioner::LearningRules).
//
// Beside that an average over steps of all that training changes, running statistics included, may
// be kept: average = d * average + (1 - d) * value with d = partitioner::ema_decay().
//
// State belongs to who updates an element: its owner, which sends the new value to the others, or
// all who hold it, see ParameterSet. Averages, too.

#pragma once

#include <vector>

#include "engine/execution/parameters.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/plan/kept_parts.h"

namespace tessera::engine {

// The arrays of training by these options.
[[nodiscard]] partitioner::TrainedArrays trained_arrays(
    const partitioner::TrainingOptions& training);

// The state of one parameter, for the elements that a rank updates
// (ParameterPlan::updated): run after run, as all_states() of parameter_chunks.h places them.
template <class T>
struct OptimizerState {
  Array<T> first;    // velocity, or mean gradient
  Array<T> second;   // mean squared gradient; Adam only
  Array<T> average;  // over steps; of running statistics, too
};

template <class T>
class Optimizer {
 public:
  Optimizer(const partitioner::TrainingOptions& options,
            const ParameterSet<T>& parameters,
            int rank);

  // Updates the elements that this rank owns, of all parameters or of number i, by their gradients.
  // `step` counts from 1.
  void update(ParameterSet<T>& parameters, Index step);
  void update(ParameterSet<T>& parameters, std::size_t i, Index step);
  // Updates some elements of number i, which another rank owns and this one updates, too, and their
  // averages.
  void update(ParameterSet<T>& parameters,
              std::size_t i,
              Index step,
              const Range& elements,
              const T* gradient);
  // The same of values and gradients that lie as the state does.
  void update(const partitioner::ParameterPlan& plan,
              std::size_t i,
              Index step,
              const T* gradient,
              T* values);

  // Averages of the values that there are before the first step; and, after each step, with the
  // values that it has left of what this rank owns. Those of other elements change with them.
  void begin_averages(const ParameterSet<T>& parameters);
  void average(const ParameterSet<T>& parameters, Index step);
  // Exchanges averages and values that this rank owns.
  void swap_averages(ParameterSet<T>& parameters);

  // In the order of ParameterSet::all(); empty arrays where nothing is learnt.
  [[nodiscard]] std::vector<OptimizerState<T>>& states() { return states_; }
  [[nodiscard]] const std::vector<OptimizerState<T>>& states() const { return states_; }

  [[nodiscard]] partitioner::TrainedArrays trained() const { return trained_arrays(options_); }
  [[nodiscard]] Index bytes() const;

 private:
  struct Rules;
  [[nodiscard]] Rules rules(const partitioner::ParameterPlan& plan, Index step) const;
  void update(const Rules& rules,
              OptimizerState<T>& state,
              const Range& places,
              const T* gradient,
              T* value) const;

  partitioner::TrainingOptions options_;
  int rank_;
  std::vector<OptimizerState<T>> states_;
};

}  // namespace tessera::engine
