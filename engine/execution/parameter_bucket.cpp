#include "engine/execution/parameter_bucket.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::Message;

namespace {

// A message in half precision: what 1 stands for, then the halves.
constexpr Index kUnitBytes = sizeof(float);

Half* halves_of(Array<std::byte>& bytes) {
  return reinterpret_cast<Half*>(bytes.data() + kUnitBytes);
}
const Half* halves_of(const Array<std::byte>& bytes) {
  return reinterpret_cast<const Half*>(bytes.data() + kUnitBytes);
}

void put_unit(float unit, Array<std::byte>& bytes) {
  std::memcpy(bytes.data(), &unit, sizeof(unit));
}
float unit_of(const Array<std::byte>& bytes) {
  float unit = 1;
  std::memcpy(&unit, bytes.data(), sizeof(unit));
  return unit;
}

}  // namespace

template <class T>
ParameterBucket<T>::ParameterBucket(std::vector<Parameter<T>*> parameters,
                                    partitioner::ReductionPrecision precision,
                                    int rank)
    : precision_(precision) {
  for (Parameter<T>* parameter : parameters) {
    add_slices(*parameter, rank);
  }
  const auto by_peer = [](const Parcel& a, const Parcel& b) { return a.peer < b.peer; };
  Index borrowed = 0;
  for (auto* parcels : {&holders_, &owners_}) {
    std::sort(parcels->begin(), parcels->end(), by_peer);
    for (Parcel& parcel : *parcels) {
      Index elements = 0;
      for (Slice& slice : parcel.slices) {
        if (parcels == &owners_) {
          slice.at = borrowed;
          borrowed += slice.elements.size();
        }
        elements += slice.elements.size();
      }
      parcel.bytes = Array<std::byte>(message_bytes(elements));
    }
  }
  if (half()) {
    const Index shared = shared_.empty() ? 0 : shared_.back().at + shared_.back().elements.size();
    changes_ = Array<Half>(shared);
    value_errors_ = Array<T>(shared);
    gradient_errors_ = Array<T>(borrowed);
  }
}

// An owned run is sent whole to each of those who hold it.
template <class T>
void ParameterBucket<T>::add_slices(Parameter<T>& parameter, int rank) {
  const auto& runs = parameter.plan->owned[static_cast<std::size_t>(rank)];
  for (const Message& message : parameter.plan->messages) {
    const Range& elements = message.region.cols;
    if (message.from == rank) {
      partitioner::expects(std::find(runs.begin(), runs.end(), elements) != runs.end(),
                           "all of an owned run travels together");
      parcel(holders_, message.to)
          .slices.push_back({&parameter, elements, share(parameter, elements)});
    } else if (message.to == rank) {
      parcel(owners_, message.from).slices.push_back({&parameter, elements, 0});
    }
  }
}

// Where the run stands among all that is shared.
template <class T>
Index ParameterBucket<T>::share(Parameter<T>& parameter, const Range& run) {
  for (const Slice& slice : shared_) {
    if (slice.of == &parameter && slice.elements == run) {
      return slice.at;
    }
  }
  const Index at = shared_.empty() ? 0 : shared_.back().at + shared_.back().elements.size();
  shared_.push_back({&parameter, run, at});
  return at;
}

template <class T>
typename ParameterBucket<T>::Parcel& ParameterBucket<T>::parcel(std::vector<Parcel>& parcels,
                                                                int peer) {
  const auto found = std::find_if(
      parcels.begin(), parcels.end(), [peer](const Parcel& of) { return of.peer == peer; });
  return found != parcels.end() ? *found : parcels.emplace_back(Parcel{peer, {}, {}});
}

template <class T>
Index ParameterBucket<T>::message_bytes(Index elements) const {
  return reduction_message_bytes(precision_, elements, sizeof(T));
}

template <class T>
Index ParameterBucket<T>::gradient_bytes(const Parcel& parcel) const {
  Index elements = 0;
  for (const Slice& slice : parcel.slices) {
    elements += is_sent(slice) ? slice.elements.size() : 0;
  }
  return message_bytes(elements);
}

template <class T>
void ParameterBucket<T>::pack_gradient(Parcel& parcel) {
  if (!half()) {
    auto* to = reinterpret_cast<T*>(parcel.bytes.data());
    for (const Slice& slice : parcel.slices) {
      if (is_sent(slice)) {
        to = std::copy_n(slice.gradient(), slice.elements.size(), to);
      }
    }
    return;
  }
  float largest = 0;
  for (const Slice& slice : parcel.slices) {
    if (is_sent(slice)) {
      T* const errors = gradient_errors_.data() + slice.at;
      for (Index i = 0; i < slice.elements.size(); ++i) {
        errors[i] += slice.gradient()[i];
      }
      largest = largest_magnitude(errors, slice.elements.size(), largest);
    }
  }
  const float unit = half_unit(largest);
  put_unit(unit, parcel.bytes);
  Half* to = halves_of(parcel.bytes);
  for (const Slice& slice : parcel.slices) {
    if (is_sent(slice)) {
      round_to_halves(unit, slice.elements.size(), gradient_errors_.data() + slice.at, to);
      to += slice.elements.size();
    }
  }
}

template <class T>
void ParameterBucket<T>::add_gradient(const Parcel& parcel) const {
  if (half()) {
    const Half* from = halves_of(parcel.bytes);
    for (const Slice& slice : parcel.slices) {
      if (is_sent(slice)) {
        add_halves(unit_of(parcel.bytes), from, slice.elements.size(), slice.gradient());
        from += slice.elements.size();
      }
    }
    return;
  }
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
}

template <class T>
void ParameterBucket<T>::start_reduction(BulkTransfers& transfers, Already already) {
  already_ = already;
  for (Parcel& parcel : holders_) {
    transfers.post_receive(batch_, parcel.peer, parcel.bytes.span().first(gradient_bytes(parcel)));
  }
  for (Parcel& parcel : owners_) {
    pack_gradient(parcel);
    transfers.post_send(batch_, parcel.peer, parcel.bytes.span().first(gradient_bytes(parcel)));
  }
}

template <class T>
void ParameterBucket<T>::finish_reduction(BulkTransfers& transfers) {
  transfers.wait(batch_);
  for (const Parcel& parcel : holders_) {
    add_gradient(parcel);
  }
  if (half()) {
    restore_values();
  }
}

// Own values become what they are without rounding; the errors keep what others hold meanwhile.
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
void ParameterBucket<T>::round_changes() {
  float largest = 0;
  for (const Slice& slice : shared_) {
    T* const values = slice.values();
    T* const errors = value_errors_.data() + slice.at;
    for (Index i = 0; i < slice.elements.size(); ++i) {
      const T held = errors[i];
      errors[i] = values[i] - held;
      values[i] = held;
    }
    largest = largest_magnitude(errors, slice.elements.size(), largest);
  }
  change_unit_ = half_unit(largest);
  for (const Slice& slice : shared_) {
    const Index count = slice.elements.size();
    round_to_halves(
        change_unit_, count, value_errors_.data() + slice.at, changes_.data() + slice.at);
    add_halves(change_unit_, changes_.data() + slice.at, count, slice.values());
  }
}

template <class T>
void ParameterBucket<T>::pack_values(Parcel& parcel) const {
  if (half()) {
    put_unit(change_unit_, parcel.bytes);
    Half* to = halves_of(parcel.bytes);
    for (const Slice& slice : parcel.slices) {
      to = std::copy_n(changes_.data() + slice.at, slice.elements.size(), to);
    }
    return;
  }
  auto* to = reinterpret_cast<T*>(parcel.bytes.data());
  for (const Slice& slice : parcel.slices) {
    to = std::copy_n(slice.values(), slice.elements.size(), to);
  }
}

template <class T>
void ParameterBucket<T>::take_values(const Parcel& parcel) const {
  if (half()) {
    const Half* from = halves_of(parcel.bytes);
    for (const Slice& slice : parcel.slices) {
      add_halves(unit_of(parcel.bytes), from, slice.elements.size(), slice.values());
      from += slice.elements.size();
    }
    return;
  }
  const auto* from = reinterpret_cast<const T*>(parcel.bytes.data());
  for (const Slice& slice : parcel.slices) {
    std::copy_n(from, slice.elements.size(), slice.values());
    from += slice.elements.size();
  }
}

template <class T>
void ParameterBucket<T>::start_all_gather(BulkTransfers& transfers) {
  for (Parcel& parcel : owners_) {
    transfers.post_receive(batch_, parcel.peer, parcel.bytes.span());
  }
  if (half()) {
    round_changes();
  }
  for (Parcel& parcel : holders_) {
    pack_values(parcel);
    transfers.post_send(batch_, parcel.peer, parcel.bytes.span());
  }
}

template <class T>
void ParameterBucket<T>::finish_all_gather(BulkTransfers& transfers) {
  transfers.wait(batch_);
  for (const Parcel& parcel : owners_) {
    take_values(parcel);
  }
}

template <class T>
void ParameterBucket<T>::clear_error_feedback() {
  std::fill_n(value_errors_.data(), value_errors_.size(), T{});
  std::fill_n(gradient_errors_.data(), gradient_errors_.size(), T{});
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
