// What an optimizer does to each of many numbers: elements are side by side, memory is the limit,
// and threads share them out.

#pragma once

#include "engine/base/tensor.h"

namespace tessera::engine {

// v = momentum * v + g, w = w - rate * v with g the gradient and decay * w; Nesterov's way
// w = w - rate * (g + momentum * v) with the new v.
template <class T>
struct MomentumRule {
  T rate = 0;
  T momentum = 0;
  T decay = 0;
  bool nesterov = false;
};

// Means of gradients and of their squares, as Adam (Kingma, Ba 2015) has them. `decay` * w is part
// of the gradient; before that a value shrinks to `keep` of it, as AdamW (Loshchilov, Hutter 2019)
// has it.
template <class T>
struct AdamRule {
  T rate = 0;  // with both corrections in it, so that epsilon is that of the corrected root
  T beta1 = 0;
  T beta2 = 0;
  T second_correction = 0;
  T epsilon = 0;
  T decay = 0;
  T keep = 1;
};

// Update `count` values, and what is remembered of them, by their gradients.
template <class T>
void update_by(const MomentumRule<T>& rule, Index count, const T* gradient, T* velocity, T* value);
template <class T>
void update_by(
    const AdamRule<T>& rule, Index count, const T* gradient, T* mean, T* mean_square, T* value);

// Moves each average by `share` of the way to its value.
template <class T>
void average_by(T share, Index count, const T* value, T* average);

// In double precision, in an order that does not depend on the number of threads.
template <class T>
[[nodiscard]] double sum_of_squares(Index count, const T* numbers);

// Sets `count` numbers to 0.
template <class T>
void set_zero(T* numbers, Index count);

}  // namespace tessera::engine
