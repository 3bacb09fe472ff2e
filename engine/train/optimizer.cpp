#include "engine/train/optimizer.h"

#include <cmath>

namespace engine {

namespace {

template <class T>
struct AdamStep {
  T rate;  // with both corrections in it, so that epsilon is that of the corrected root
  T beta1;
  T beta2;
  T second_correction;
  T epsilon;
};

// Calls visit(element of the rank's state, element held) for each element that the rank owns.
template <class T, class Visit>
void for_each_owned(const Parameter<T>& parameter, int rank, Visit visit) {
  Index at = 0;
  for (const Range& run : parameter.plan->owned[static_cast<std::size_t>(rank)]) {
    for (Index element = run.begin; element < run.end; ++element, ++at) {
      visit(at, element - parameter.held.begin);
    }
  }
}

}  // namespace

template <class T>
Optimizer<T>::Optimizer(const partitioner::TrainingOptions& options,
                        const ParameterSet<T>& parameters,
                        int rank)
    : options_(options), rank_(rank) {
  for (const Parameter<T>& parameter : parameters.all()) {
    Index owned = 0;
    if (is_learnt(parameter.plan->kind)) {
      for_each_owned(parameter, rank, [&owned](Index, Index) { ++owned; });
    }
    states_.push_back({Array<T>(owned), Array<T>(options.adam ? owned : 0)});
  }
}

template <class T>
void Optimizer<T>::update(ParameterSet<T>& parameters, Index step) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (is_learnt(parameters.all()[i].plan->kind)) {
      update(parameters, i, step);
    }
  }
}

template <class T>
void Optimizer<T>::update(ParameterSet<T>& parameters, std::size_t i, Index step) {
  const T rate = static_cast<T>(learning_rate(options_, step));
  const double steps = static_cast<double>(step);
  const AdamStep<T> adam{
      static_cast<T>(static_cast<double>(rate) / (1 - std::pow(options_.adam_beta1, steps))),
      static_cast<T>(options_.adam_beta1),
      static_cast<T>(options_.adam_beta2),
      static_cast<T>(1 / (1 - std::pow(options_.adam_beta2, steps))),
      static_cast<T>(options_.adam_epsilon)};
  const T momentum = static_cast<T>(options_.momentum);
  Parameter<T>& parameter = parameters.all()[i];
  OptimizerState<T>& state = states_[i];
  const bool decays = parameter.plan->kind == partitioner::ParameterKind::Weight;
  const T decay = decays ? static_cast<T>(options_.decay) : T(0);
  for_each_owned(parameter, rank_, [&](Index at, Index held) {
    T& value = parameter.values[held];
    const T gradient = parameter.gradient[held] + decay * value;
    if (options_.adam) {
      state.first[at] = adam.beta1 * state.first[at] + (T(1) - adam.beta1) * gradient;
      state.second[at] = adam.beta2 * state.second[at] + (T(1) - adam.beta2) * gradient * gradient;
      value -= adam.rate * state.first[at] /
               (std::sqrt(state.second[at] * adam.second_correction) + adam.epsilon);
    } else {
      state.first[at] = momentum * state.first[at] + gradient;
      value -= rate * state.first[at];
    }
  });
}

template <class T>
Index Optimizer<T>::bytes() const {
  Index bytes = 0;
  for (const OptimizerState<T>& state : states_) {
    bytes += state.first.bytes() + state.second.bytes();
  }
  return bytes;
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace engine
