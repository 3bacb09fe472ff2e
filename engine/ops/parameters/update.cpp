#include "engine/ops/parameters/update.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/ops/loops/threads.h"

namespace tessera::engine {

namespace {

constexpr Index kFewNumbers = Index{1} << 14U;  // which one thread is as fast with
constexpr Index kRun = Index{1} << 12U;

// Calls visit(begin, end) for runs of `count` numbers, in parallel.
template <class Visit>
void for_each_number_run(Index count, Visit visit) {
  if (count <= kFewNumbers) {
    visit(0, count);
    return;
  }
  parallel_for({0, (count + kRun - 1) / kRun},
               [&](Index run) { visit(run * kRun, std::min((run + 1) * kRun, count)); });
}

}  // namespace

template <class T>
void update_by(const MomentumRule<T>& rule, Index count, const T* gradient, T* velocity, T* value) {
  if (rule.nesterov) {
    for_each_number_run(count, [=](Index begin, Index end) {
#pragma omp simd
      for (Index i = begin; i < end; ++i) {
        const T g = gradient[i] + rule.decay * value[i];
        velocity[i] = rule.momentum * velocity[i] + g;
        value[i] -= rule.rate * (g + rule.momentum * velocity[i]);
      }
    });
    return;
  }
  for_each_number_run(count, [=](Index begin, Index end) {
#pragma omp simd
    for (Index i = begin; i < end; ++i) {
      velocity[i] = rule.momentum * velocity[i] + (gradient[i] + rule.decay * value[i]);
      value[i] -= rule.rate * velocity[i];
    }
  });
}

template <class T>
void update_by(
    const AdamRule<T>& rule, Index count, const T* gradient, T* mean, T* mean_square, T* value) {
  for_each_number_run(count, [=](Index begin, Index end) {
#pragma omp simd
    for (Index i = begin; i < end; ++i) {
      const T g = gradient[i] + rule.decay * value[i];
      mean[i] = rule.beta1 * mean[i] + (T(1) - rule.beta1) * g;
      mean_square[i] = rule.beta2 * mean_square[i] + (T(1) - rule.beta2) * g * g;
      value[i] =
          rule.keep * value[i] -
          rule.rate * mean[i] / (std::sqrt(mean_square[i] * rule.second_correction) + rule.epsilon);
    }
  });
}

template <class T>
void average_by(T share, Index count, const T* value, T* average) {
  for_each_number_run(count, [=](Index begin, Index end) {
#pragma omp simd
    for (Index i = begin; i < end; ++i) {
      average[i] += share * (value[i] - average[i]);
    }
  });
}

template <class T>
double sum_of_squares(Index count, const T* numbers) {
  const Index runs = (count + kRun - 1) / kRun;
  std::vector<double> sums(static_cast<std::size_t>(runs));
  parallel_for({0, runs}, [&](Index run) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index i = run * kRun; i < std::min((run + 1) * kRun, count); ++i) {
      sum += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
    }
    sums[static_cast<std::size_t>(run)] = sum;
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class T>
void set_zero(T* numbers, Index count) {
  for_each_number_run(
      count, [=](Index begin, Index end) { std::fill(numbers + begin, numbers + end, T{}); });
}

template void update_by<float>(const MomentumRule<float>&, Index, const float*, float*, float*);
template void update_by<double>(
    const MomentumRule<double>&, Index, const double*, double*, double*);
template void update_by<float>(const AdamRule<float>&, Index, const float*, float*, float*, float*);
template void update_by<double>(
    const AdamRule<double>&, Index, const double*, double*, double*, double*);
template void average_by<float>(float, Index, const float*, float*);
template void average_by<double>(double, Index, const double*, double*);
template double sum_of_squares<float>(Index, const float*);
template double sum_of_squares<double>(Index, const double*);
template void set_zero<float>(float*, Index);
template void set_zero<double>(double*, Index);

}  // namespace tessera::engine
