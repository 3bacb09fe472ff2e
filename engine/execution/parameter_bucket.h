// Parameters that travel together: gradients from those who hold elements to their owner, which
// adds them up in rank order, and new values back; a message from a rank to another.
//
// Where they are compressed, the sender of a gradient adds what its message leaves out to the next
// one (error feedback: Seide et al. 2014, Karimireddy et al. 2019). Of a value its compressed
// change travels, which the owner adds to its own copy as well: so all copies hold the same bits,
// and the owner keeps what is left. Elements that one rank alone holds are not compressed.
//
// Where the optimizer's state is replicated, the reduced gradient travels in place of a new value,
// by which all who hold the element update it.

#pragma once

#include <array>
#include <functional>
#include <vector>

#include "engine/comm/bulk_transfers.h"
#include "engine/execution/parameter.h"
#include "engine/ops/parameters/packed_runs.h"

namespace tessera::engine {

template <class T>
class ParameterBucket {
 public:
  // Which gradients have been reduced over ranks without it.
  enum class Already { None, Normalized };

  // Updates some elements of a parameter, which another rank owns, by their reduced gradients.
  using Update =
      std::function<void(Parameter<T>& parameter, const Range& elements, const T* gradient)>;

  // A bucket of parameters that stay where they are. `rank` is that of this process.
  ParameterBucket(std::vector<Parameter<T>*> parameters,
                  const partitioner::GradientReduction& reduction,
                  int rank);

  // In a step each of these once, in this order; all ranks call them together.
  void start_reduction(BulkTransfers& transfers, Already already);
  // Afterwards owners have the reduced gradients, and values that are ready for an update.
  void finish_reduction(BulkTransfers& transfers);
  void start_all_gather(BulkTransfers& transfers);
  // `update` is called where reduced gradients have travelled.
  void finish_all_gather(BulkTransfers& transfers, const Update& update);

  // What compression has left so far, of changes of values and of gradients. Elements lie as they
  // do on any rank with the same plan.
  [[nodiscard]] std::array<Array<T>*, 2> error_feedback() {
    return {&value_errors_, &gradient_errors_};
  }

  // The size of packed messages and of what compression leaves.
  [[nodiscard]] Index bytes() const;

 private:
  struct Slice {
    Parameter<T>* parameter = nullptr;
    Range elements;       // of the whole tensor
    Index at = 0;         // of the first one, among all shared or all borrowed elements
    Index packed_at = 0;  // of shared ones, in changes_

    [[nodiscard]] T* values() const {
      return parameter->values.data() + elements.begin - parameter->held.begin;
    }
    [[nodiscard]] T* gradient() const {
      return parameter->gradient.data() + elements.begin - parameter->held.begin;
    }
    // So many numbers as the slice has elements.
    [[nodiscard]] ElementValues<T> run(T* numbers) const {
      return {{numbers, static_cast<std::size_t>(elements.size())}, parameter->plan->shape.row};
    }
  };
  // What one other rank has to do with.
  struct Parcel {
    int peer = 0;
    std::vector<Slice> slices;
    Array<std::byte> bytes;
  };

  void add_slices(Parameter<T>& parameter, int rank);
  [[nodiscard]] Slice share(Parameter<T>& parameter, const Range& run);
  Parcel& parcel(std::vector<Parcel>& parcels, int peer);
  [[nodiscard]] Index packed_bytes(const Slice& slice) const;
  [[nodiscard]] bool is_sent(const Slice& slice) const {
    return already_ == Already::None || !slice.parameter->normalized;
  }
  // The size of all slices, or of the gradients that are sent.
  [[nodiscard]] Index value_bytes(const Parcel& parcel) const;
  [[nodiscard]] Index gradient_bytes(const Parcel& parcel) const;
  void pack_gradient(Parcel& parcel);
  void pack_exact(Parcel& parcel, T* (Slice::*numbers)() const) const;
  void update_by(const Parcel& parcel, const Update& update) const;
  void add_gradient(const Parcel& parcel) const;
  void restore_values();
  void compress_changes();
  void pack_values(Parcel& parcel) const;
  void take_values(const Parcel& parcel) const;
  [[nodiscard]] bool is_exact() const { return compression_ == partitioner::Compression::Exact; }
  [[nodiscard]] PackedRuns<std::byte> packed(Parcel& parcel) const;
  [[nodiscard]] PackedRuns<const std::byte> packed(const Parcel& parcel) const;

  partitioner::Compression compression_;
  bool replicated_;  // the optimizer's state
  Already already_ = Already::None;
  std::vector<Slice> shared_;    // elements that are owned here and held elsewhere too
  std::vector<Parcel> holders_;  // of these, by rank
  std::vector<Parcel> owners_;   // of borrowed elements, held here and owned elsewhere, by rank
  BulkTransfers::Batch batch_;
  // Only where they are compressed:
  Array<std::byte> changes_;  // of shared values, packed, and the head of their messages
  std::array<std::byte, sizeof(float)> changes_head_{};
  Array<T> value_errors_;     // of shared elements; what others hold while they are updated
  Array<T> gradient_errors_;  // of borrowed elements
};

}  // namespace tessera::engine
