// The learnt elements that a rank owns as one row of numbers: bucket after bucket, in each by
// parameters, then runs. Ranks with the same part of different replicas have the same row.

#pragma once

#include <span>
#include <vector>

#include "engine/execution/parameters.h"

namespace tessera::engine {

class OwnedElements {
 public:
  // The parameters must outlive it.
  OwnedElements(ParameterSet<float>& parameters, int rank);

  [[nodiscard]] int buckets() const { return static_cast<int>(buckets_.size()); }
  [[nodiscard]] Index size() const { return buckets_.empty() ? 0 : buckets_.back().all.end; }
  [[nodiscard]] Index largest_bucket() const;
  [[nodiscard]] std::size_t part_size(int bucket) const {
    return static_cast<std::size_t>(at(bucket).all.size());
  }
  // A bucket's part of a row of all elements.
  [[nodiscard]] std::span<float> part(int bucket, Array<float>& row) const;

  // `numbers` are those of a bucket.
  void copy_values(int bucket, std::span<float> numbers) const;
  void assign_values(int bucket, std::span<const float> numbers) const;
  void copy_gradients(int bucket, std::span<float> numbers) const;
  void assign_gradients(int bucket, std::span<const float> numbers) const;

  // The part of a bucket that belongs to one tensor.
  struct ParameterPart {
    std::size_t parameter = 0;  // in ParameterSet::all()
    Range numbers;              // within the bucket
  };
  [[nodiscard]] const std::vector<ParameterPart>& parameters(int bucket) const {
    return at(bucket).parameters;
  }
  // Its runs, as they are compressed.
  [[nodiscard]] std::vector<ElementValues<float>> runs(int bucket, std::span<float> numbers) const;

 private:
  struct Run {
    Parameter<float>* parameter = nullptr;
    Range held;  // in arrays like Parameter::values
  };
  struct Bucket {
    Range all;  // in the row
    std::vector<Run> runs;
    std::vector<ParameterPart> parameters;
  };
  [[nodiscard]] const Bucket& at(int bucket) const {
    return buckets_[static_cast<std::size_t>(bucket)];
  }

  std::vector<Bucket> buckets_;
};

}  // namespace tessera::engine
