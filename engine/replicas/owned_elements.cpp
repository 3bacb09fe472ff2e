#include "engine/replicas/owned_elements.h"

#include <algorithm>

namespace tessera::engine {

OwnedElements::OwnedElements(ParameterSet<float>& parameters, int rank) {
  Index end = 0;
  for (int number = 0; number < parameters.buckets(); ++number) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.all.begin = end;
    for (const std::size_t i : parameters.in_bucket(number)) {
      Parameter<float>& parameter = parameters.all()[i];
      const Index begin = end;
      for (const Range& run : parameter.plan->owned[static_cast<std::size_t>(rank)]) {
        bucket.runs.push_back(
            {&parameter, {run.begin - parameter.held.begin, run.end - parameter.held.begin}});
        end += run.size();
      }
      bucket.parameters.push_back({i, {begin - bucket.all.begin, end - bucket.all.begin}});
    }
    bucket.all.end = end;
  }
}

Index OwnedElements::largest_bucket() const {
  Index largest = 0;
  for (const Bucket& bucket : buckets_) {
    largest = std::max(largest, bucket.all.size());
  }
  return largest;
}

std::span<float> OwnedElements::part(int bucket, Array<float>& row) const {
  const Range& all = at(bucket).all;
  return row.span().subspan(static_cast<std::size_t>(all.begin),
                            static_cast<std::size_t>(all.size()));
}

void OwnedElements::copy_values(int bucket, std::span<float> numbers) const {
  float* to = numbers.data();
  for (const Run& run : at(bucket).runs) {
    to = std::copy_n(run.parameter->values.data() + run.held.begin, run.held.size(), to);
  }
}

void OwnedElements::assign_values(int bucket, std::span<const float> numbers) const {
  const float* from = numbers.data();
  for (const Run& run : at(bucket).runs) {
    std::copy_n(from, run.held.size(), run.parameter->values.data() + run.held.begin);
    from += run.held.size();
  }
}

void OwnedElements::copy_gradients(int bucket, std::span<float> numbers) const {
  float* to = numbers.data();
  for (const Run& run : at(bucket).runs) {
    to = std::copy_n(run.parameter->gradient.data() + run.held.begin, run.held.size(), to);
  }
}

void OwnedElements::assign_gradients(int bucket, std::span<const float> numbers) const {
  const float* from = numbers.data();
  for (const Run& run : at(bucket).runs) {
    std::copy_n(from, run.held.size(), run.parameter->gradient.data() + run.held.begin);
    from += run.held.size();
  }
}

std::vector<ElementValues<float>> OwnedElements::runs(int bucket, std::span<float> numbers) const {
  std::vector<ElementValues<float>> result;
  std::span<float> rest = numbers;
  for (const Run& run : at(bucket).runs) {
    const auto count = static_cast<std::size_t>(run.held.size());
    result.push_back({rest.first(count), run.parameter->plan->shape.row});
    rest = rest.subspan(count);
  }
  return result;
}

}  // namespace tessera::engine
