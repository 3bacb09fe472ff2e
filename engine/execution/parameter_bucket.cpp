#include "engine/execution/parameter_bucket.h"

#include <algorithm>
#include <span>

#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::Compression;
using partitioner::Message;

namespace {

std::size_t head_bytes(const Compression& compression) {
  return static_cast<std::size_t>(packing_overhead_bytes(compression));
}

}  // namespace

template <class T>
ParameterBucket<T>::ParameterBucket(std::vector<Parameter<T>*> parameters,
                                    const partitioner::GradientReduction& reduction,
                                    int rank)
    : compression_(reduction.compression),
      replicated_(reduction.optimizer == partitioner::OptimizerStates::Replicated) {
  for (Parameter<T>* parameter : parameters) {
    add_slices(*parameter, rank);
  }
  const auto by_peer = [](const Parcel& a, const Parcel& b) { return a.peer < b.peer; };
  Index borrowed = 0;
  for (auto* parcels : {&holders_, &owners_}) {
    std::sort(parcels->begin(), parcels->end(), by_peer);
    for (Parcel& parcel : *parcels) {
      for (Slice& slice : parcel.slices) {
        if (parcels == &owners_) {
          slice.at = borrowed;
          borrowed += slice.elements.size();
        }
      }
      parcel.bytes = Array<std::byte>(value_bytes(parcel));
    }
  }
  if (!is_exact() && !shared_.empty()) {
    const Slice& last = shared_.back();
    changes_ = Array<std::byte>(last.packed_at + packed_bytes(last));
    value_errors_ = Array<T>(last.at + last.elements.size());
  }
  if (!is_exact()) {
    gradient_errors_ = Array<T>(borrowed);
  }
}

// An owned run is sent whole to each of those who hold it.
template <class T>
void ParameterBucket<T>::add_slices(Parameter<T>& parameter, int rank) {
  const auto& runs = parameter.plan->owned[static_cast<std::size_t>(rank)];
  for (const Message& message : parameter.plan->messages) {
    const Range& elements = message.payload.element_run();
    if (message.from == rank) {
      expects(std::find(runs.begin(), runs.end(), elements) != runs.end(),
              "all of an owned run travels together");
      parcel(holders_, message.to).slices.push_back(share(parameter, elements));
    } else if (message.to == rank) {
      parcel(owners_, message.from).slices.push_back({&parameter, elements});
    }
  }
}

// The run among all that is shared.
template <class T>
typename ParameterBucket<T>::Slice ParameterBucket<T>::share(Parameter<T>& parameter,
                                                             const Range& run) {
  for (const Slice& slice : shared_) {
    if (slice.parameter == &parameter && slice.elements == run) {
      return slice;
    }
  }
  Slice slice{&parameter, run};
  if (!shared_.empty()) {
    const Slice& last = shared_.back();
    slice.at = last.at + last.elements.size();
    slice.packed_at = last.packed_at + packed_bytes(last);
  }
  shared_.push_back(slice);
  return slice;
}

template <class T>
typename ParameterBucket<T>::Parcel& ParameterBucket<T>::parcel(std::vector<Parcel>& parcels,
                                                                int peer) {
  const auto found = std::find_if(
      parcels.begin(), parcels.end(), [peer](const Parcel& known) { return known.peer == peer; });
  return found != parcels.end() ? *found : parcels.emplace_back(Parcel{peer, {}, {}});
}

template <class T>
Index ParameterBucket<T>::packed_bytes(const Slice& slice) const {
  return partitioner::packed_bytes(
      compression_, {slice.elements.size(), slice.parameter->plan->shape.row}, sizeof(T));
}

template <class T>
Index ParameterBucket<T>::value_bytes(const Parcel& parcel) const {
  Index bytes = 0;
  for (const Slice& slice : parcel.slices) {
    bytes += packed_bytes(slice);
  }
  return bytes == 0 ? 0 : bytes + packing_overhead_bytes(compression_);
}

template <class T>
Index ParameterBucket<T>::gradient_bytes(const Parcel& parcel) const {
  Index bytes = 0;
  for (const Slice& slice : parcel.slices) {
    bytes += is_sent(slice) ? packed_bytes(slice) : 0;
  }
  return bytes == 0 ? 0 : bytes + packing_overhead_bytes(compression_);
}

template <class T>
PackedRuns<std::byte> ParameterBucket<T>::packed(Parcel& parcel) const {
  const std::span<std::byte> bytes = parcel.bytes.span();
  return {bytes.first(head_bytes(compression_)), bytes.subspan(head_bytes(compression_))};
}

template <class T>
PackedRuns<const std::byte> ParameterBucket<T>::packed(const Parcel& parcel) const {
  const std::span<const std::byte> bytes = parcel.bytes.span();
  return {bytes.first(head_bytes(compression_)), bytes.subspan(head_bytes(compression_))};
}

template <class T>
void ParameterBucket<T>::pack_gradient(Parcel& parcel) {
  if (is_exact()) {
    auto* to = reinterpret_cast<T*>(parcel.bytes.data());
    for (const Slice& slice : parcel.slices) {
      if (is_sent(slice)) {
        to = std::copy_n(slice.gradient(), slice.elements.size(), to);
      }
    }
    return;
  }
  std::vector<ElementValues<T>> runs;
  for (const Slice& slice : parcel.slices) {
    if (is_sent(slice)) {
      T* const errors = gradient_errors_.data() + slice.at;
      for (Index i = 0; i < slice.elements.size(); ++i) {
        errors[i] += slice.gradient()[i];
      }
      runs.push_back(slice.run(errors));
    }
  }
  if (!runs.empty()) {
    pack_runs(compression_, runs, packed(parcel));
  }
}

template <class T>
void ParameterBucket<T>::add_gradient(const Parcel& parcel) const {
  if (is_exact()) {
    const auto* from = reinterpret_cast<const T*>(parcel.bytes.data());
    for (const Slice& slice : parcel.slices) {
      if (is_sent(slice)) {
        T* const to = slice.gradient();
        for (Index i = 0; i < slice.elements.size(); ++i) {
          to[i] += from[i];
        }
        from += slice.elements.size();
      }
    }
    return;
  }
  std::vector<ElementValues<T>> runs;
  for (const Slice& slice : parcel.slices) {
    if (is_sent(slice)) {
      runs.push_back(slice.run(slice.gradient()));
    }
  }
  if (!runs.empty()) {
    add_packed_runs(compression_, packed(parcel), runs);
  }
}

template <class T>
void ParameterBucket<T>::start_reduction(BulkTransfers& transfers, Already already) {
  already_ = already;
  for (Parcel& parcel : holders_) {
    transfers.post_receive(
        batch_, parcel.peer, bytes_of(parcel.bytes.data(), gradient_bytes(parcel)));
  }
  for (Parcel& parcel : owners_) {
    pack_gradient(parcel);
    transfers.post_send(batch_, parcel.peer, bytes_of(parcel.bytes.data(), gradient_bytes(parcel)));
  }
}

template <class T>
void ParameterBucket<T>::finish_reduction(BulkTransfers& transfers) {
  transfers.wait(batch_);
  for (const Parcel& parcel : holders_) {
    add_gradient(parcel);
  }
  if (!is_exact()) {
    restore_values();
  }
}

// Own values become what they are without compression; the errors keep what others hold meanwhile.
template <class T>
void ParameterBucket<T>::restore_values() {
  for (const Slice& slice : shared_) {
    T* const values = slice.values();
    T* const errors = value_errors_.data() + slice.at;
    for (Index i = 0; i < slice.elements.size(); ++i) {
      const T held = values[i];
      values[i] += errors[i];
      errors[i] = held;
    }
  }
}

// ... and back: values become what others will hold.
template <class T>
void ParameterBucket<T>::compress_changes() {
  std::vector<ElementValues<T>> changes;
  std::vector<ElementValues<T>> held;
  for (const Slice& slice : shared_) {
    T* const values = slice.values();
    T* const errors = value_errors_.data() + slice.at;
    for (Index i = 0; i < slice.elements.size(); ++i) {
      const T holds = errors[i];
      errors[i] = values[i] - holds;
      values[i] = holds;
    }
    changes.push_back(slice.run(errors));
    held.push_back(slice.run(values));
  }
  const std::span<std::byte> head = std::span(changes_head_).first(head_bytes(compression_));
  pack_runs(compression_, changes, PackedRuns<std::byte>{head, changes_.span()});
  add_packed_runs(compression_, PackedRuns<const std::byte>{head, changes_.span()}, held);
}

template <class T>
void ParameterBucket<T>::pack_exact(Parcel& parcel, T* (Slice::*numbers)() const) const {
  auto* to = reinterpret_cast<T*>(parcel.bytes.data());
  for (const Slice& slice : parcel.slices) {
    to = std::copy_n((slice.*numbers)(), slice.elements.size(), to);
  }
}

template <class T>
void ParameterBucket<T>::pack_values(Parcel& parcel) const {
  if (is_exact()) {
    pack_exact(parcel, &Slice::values);
    return;
  }
  std::byte* to = std::copy_n(changes_head_.begin(), head_bytes(compression_), parcel.bytes.data());
  for (const Slice& slice : parcel.slices) {
    to = std::copy_n(changes_.data() + slice.packed_at, packed_bytes(slice), to);
  }
}

template <class T>
void ParameterBucket<T>::take_values(const Parcel& parcel) const {
  if (is_exact()) {
    const auto* from = reinterpret_cast<const T*>(parcel.bytes.data());
    for (const Slice& slice : parcel.slices) {
      std::copy_n(from, slice.elements.size(), slice.values());
      from += slice.elements.size();
    }
    return;
  }
  std::vector<ElementValues<T>> runs;
  for (const Slice& slice : parcel.slices) {
    runs.push_back(slice.run(slice.values()));
  }
  add_packed_runs(compression_, packed(parcel), runs);
}

template <class T>
void ParameterBucket<T>::update_by(const Parcel& parcel, const Update& update) const {
  const auto* gradient = reinterpret_cast<const T*>(parcel.bytes.data());
  for (const Slice& slice : parcel.slices) {
    update(*slice.parameter, slice.elements, gradient);
    gradient += slice.elements.size();
  }
}

template <class T>
void ParameterBucket<T>::start_all_gather(BulkTransfers& transfers) {
  for (Parcel& parcel : owners_) {
    transfers.post_receive(batch_, parcel.peer, parcel.bytes.span());
  }
  if (!is_exact()) {
    compress_changes();
  }
  for (Parcel& parcel : holders_) {
    if (replicated_) {
      pack_exact(parcel, &Slice::gradient);
    } else {
      pack_values(parcel);
    }
    transfers.post_send(batch_, parcel.peer, parcel.bytes.span());
  }
}

template <class T>
void ParameterBucket<T>::finish_all_gather(BulkTransfers& transfers, const Update& update) {
  transfers.wait(batch_);
  for (const Parcel& parcel : owners_) {
    if (replicated_) {
      update_by(parcel, update);
    } else {
      take_values(parcel);
    }
  }
}

template <class T>
Index ParameterBucket<T>::bytes() const {
  Index bytes = changes_.bytes() + value_errors_.bytes() + gradient_errors_.bytes();
  for (const auto* parcels : {&holders_, &owners_}) {
    for (const Parcel& parcel : *parcels) {
      bytes += parcel.bytes.bytes();
    }
  }
  return bytes;
}

template class ParameterBucket<float>;
template class ParameterBucket<double>;

}  // namespace tessera::engine
