// Parameters that travel together: gradients from those who hold elements to their owner, which
// adds them up in rank order, and new values back; a message from a rank to another.
//
// In half precision a gradient travels rounded, and the sender adds what rounding has left of it to
// the next one (error feedback: Seide et al. 2014, Karimireddy et al. 2019). Of a value its rounded
// change travels, which the owner adds to its own copy as well: so all copies hold the same bits,
// and the owner keeps what is left. Elements that one rank alone holds are not rounded.

#pragma once

#include <vector>

#include "engine/comm/bulk_transfers.h"
#include "engine/execution/parameter.h"
#include "engine/ops/parameters/half.h"

namespace tessera::engine {

template <class T>
class ParameterBucket {
 public:
  // Which gradients have been reduced over ranks without it.
  enum class Already { None, Normalized };

  // Of parameters that stay where they are. `rank` is that of this process.
  ParameterBucket(std::vector<Parameter<T>*> parameters,
                  partitioner::ReductionPrecision precision,
                  int rank);

  // In a step each of these once, in this order; all ranks call them together.
  void start_reduction(BulkTransfers& transfers, Already already);
  // Afterwards owners have the reduced gradients, and values that are ready for an update.
  void finish_reduction(BulkTransfers& transfers);
  void start_all_gather(BulkTransfers& transfers);
  void finish_all_gather(BulkTransfers& transfers);

  // Forgets what rounding has left so far.
  void clear_error_feedback();

  // Of packed messages and of what rounding leaves.
  [[nodiscard]] Index bytes() const;

 private:
  struct Slice {
    Parameter<T>* of = nullptr;
    Range elements;  // of the whole tensor
    Index at = 0;    // of the first one, among all shared or all borrowed elements

    [[nodiscard]] T* values() const { return of->values.data() + elements.begin - of->held.begin; }
    [[nodiscard]] T* gradient() const {
      return of->gradient.data() + elements.begin - of->held.begin;
    }
  };
  // What one other rank has to do with.
  struct Parcel {
    int peer = 0;
    std::vector<Slice> slices;
    Array<std::byte> bytes;
  };

  void add_slices(Parameter<T>& parameter, int rank);
  [[nodiscard]] Index share(Parameter<T>& parameter, const Range& run);
  Parcel& parcel(std::vector<Parcel>& parcels, int peer);
  [[nodiscard]] Index message_bytes(Index elements) const;
  [[nodiscard]] bool is_sent(const Slice& slice) const {
    return already_ == Already::None || !slice.of->normalized;
  }
  // Of the gradients that are sent.
  [[nodiscard]] Index gradient_bytes(const Parcel& parcel) const;
  void pack_gradient(Parcel& parcel);
  void add_gradient(const Parcel& parcel) const;
  void restore_values();
  void round_changes();
  void pack_values(Parcel& parcel) const;
  void take_values(const Parcel& parcel) const;
  [[nodiscard]] bool half() const { return precision_ == partitioner::ReductionPrecision::Half; }

  partitioner::ReductionPrecision precision_;
  Already already_ = Already::None;
  std::vector<Slice> shared_;    // elements that are owned here and held elsewhere too
  std::vector<Parcel> holders_;  // of these, by rank
  std::vector<Parcel> owners_;   // of borrowed elements, held here and owned elsewhere, by rank
  BulkTransfers::Batch batch_;
  // Only in half precision:
  Array<Half> changes_;  // of shared values
  float change_unit_ = 1;
  Array<T> value_errors_;     // of shared elements; what others hold while they are updated
  Array<T> gradient_errors_;  // of borrowed elements
};

}  // namespace tessera::engine
