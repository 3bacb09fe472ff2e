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
                                    partitioner::SumPrecision precision,
                                    int rank)
    : precision_(precision) {
  for (Parameter<T>* parameter : parameters) {
    add_pieces(*parameter, rank);
  }
  const auto by_peer = [](const Parcel& a, const Parcel& b) { return a.peer < b.peer; };
  Index borrowed = 0;
  for (auto* parcels : {&holders_, &owners_}) {
    std::sort(parcels->begin(), parcels->end(), by_peer);
    for (Parcel& parcel : *parcels) {
      Index elements = 0;
      for (Piece& piece : parcel.pieces) {
        if (parcels == &owners_) {
          piece.at = borrowed;
          borrowed += piece.elements.size();
        }
        elements += piece.elements.size();
      }
      parcel.bytes = Array<std::byte>(message_bytes(elements));
    }
  }
  if (half()) {
    const Index shared = shared_.empty() ? 0 : shared_.back().at + shared_.back().elements.size();
    changes_ = Array<Half>(shared);
    value_remainders_ = Array<T>(shared);
    gradient_remainders_ = Array<T>(borrowed);
  }
}

// An owned run is sent whole to each of those who hold it.
template <class T>
void ParameterBucket<T>::add_pieces(Parameter<T>& parameter, int rank) {
  const auto& runs = parameter.plan->owned[static_cast<std::size_t>(rank)];
  for (const Message& message : parameter.plan->messages) {
    const Range& elements = message.region.cols;
    if (message.from == rank) {
      partitioner::expects(std::find(runs.begin(), runs.end(), elements) != runs.end(),
                           "all of an owned run travels together");
      parcel(holders_, message.to)
          .pieces.push_back({&parameter, elements, share(parameter, elements)});
    } else if (message.to == rank) {
      parcel(owners_, message.from).pieces.push_back({&parameter, elements, 0});
    }
  }
}

// Where the run stands among all that is shared.
template <class T>
Index ParameterBucket<T>::share(Parameter<T>& parameter, const Range& run) {
  for (const Piece& piece : shared_) {
    if (piece.of == &parameter && piece.elements == run) {
      return piece.at;
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
  return sum_message_bytes(precision_, elements, sizeof(T));
}

template <class T>
Index ParameterBucket<T>::gradient_bytes(const Parcel& parcel) const {
  Index elements = 0;
  for (const Piece& piece : parcel.pieces) {
    elements += is_sent(piece) ? piece.elements.size() : 0;
  }
  return message_bytes(elements);
}

template <class T>
void ParameterBucket<T>::pack_gradient(Parcel& parcel) {
  if (!half()) {
    auto* to = reinterpret_cast<T*>(parcel.bytes.data());
    for (const Piece& piece : parcel.pieces) {
      if (is_sent(piece)) {
        to = std::copy_n(piece.gradient(), piece.elements.size(), to);
      }
    }
    return;
  }
  float largest = 0;
  for (const Piece& piece : parcel.pieces) {
    if (is_sent(piece)) {
      T* const remainders = gradient_remainders_.data() + piece.at;
      for (Index i = 0; i < piece.elements.size(); ++i) {
        remainders[i] += piece.gradient()[i];
      }
      largest = largest_magnitude(remainders, piece.elements.size(), largest);
    }
  }
  const float unit = half_unit(largest);
  put_unit(unit, parcel.bytes);
  Half* to = halves_of(parcel.bytes);
  for (const Piece& piece : parcel.pieces) {
    if (is_sent(piece)) {
      round_to_halves(unit, piece.elements.size(), gradient_remainders_.data() + piece.at, to);
      to += piece.elements.size();
    }
  }
}

template <class T>
void ParameterBucket<T>::add_gradient(const Parcel& parcel) const {
  if (half()) {
    const Half* from = halves_of(parcel.bytes);
    for (const Piece& piece : parcel.pieces) {
      if (is_sent(piece)) {
        add_halves(unit_of(parcel.bytes), from, piece.elements.size(), piece.gradient());
        from += piece.elements.size();
      }
    }
    return;
  }
  const auto* from = reinterpret_cast<const T*>(parcel.bytes.data());
  for (const Piece& piece : parcel.pieces) {
    if (is_sent(piece)) {
      T* const to = piece.gradient();
      for (Index i = 0; i < piece.elements.size(); ++i) {
        to[i] += from[i];
      }
      from += piece.elements.size();
    }
  }
}

template <class T>
void ParameterBucket<T>::start_sum(BulkTransfers& transfers, Already already) {
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
void ParameterBucket<T>::finish_sum(BulkTransfers& transfers) {
  transfers.wait(batch_);
  for (const Parcel& parcel : holders_) {
    add_gradient(parcel);
  }
  if (half()) {
    restore_values();
  }
}

// Own values become what they are without rounding; the remainders keep what others hold meanwhile.
template <class T>
void ParameterBucket<T>::restore_values() {
  for (const Piece& piece : shared_) {
    T* const values = piece.values();
    T* const remainders = value_remainders_.data() + piece.at;
    for (Index i = 0; i < piece.elements.size(); ++i) {
      const T held = values[i];
      values[i] += remainders[i];
      remainders[i] = held;
    }
  }
}

// ... and back: values become what others will hold.
template <class T>
void ParameterBucket<T>::round_changes() {
  float largest = 0;
  for (const Piece& piece : shared_) {
    T* const values = piece.values();
    T* const remainders = value_remainders_.data() + piece.at;
    for (Index i = 0; i < piece.elements.size(); ++i) {
      const T held = remainders[i];
      remainders[i] = values[i] - held;
      values[i] = held;
    }
    largest = largest_magnitude(remainders, piece.elements.size(), largest);
  }
  change_unit_ = half_unit(largest);
  for (const Piece& piece : shared_) {
    const Index count = piece.elements.size();
    round_to_halves(
        change_unit_, count, value_remainders_.data() + piece.at, changes_.data() + piece.at);
    add_halves(change_unit_, changes_.data() + piece.at, count, piece.values());
  }
}

template <class T>
void ParameterBucket<T>::pack_values(Parcel& parcel) const {
  if (half()) {
    put_unit(change_unit_, parcel.bytes);
    Half* to = halves_of(parcel.bytes);
    for (const Piece& piece : parcel.pieces) {
      to = std::copy_n(changes_.data() + piece.at, piece.elements.size(), to);
    }
    return;
  }
  auto* to = reinterpret_cast<T*>(parcel.bytes.data());
  for (const Piece& piece : parcel.pieces) {
    to = std::copy_n(piece.values(), piece.elements.size(), to);
  }
}

template <class T>
void ParameterBucket<T>::take_values(const Parcel& parcel) const {
  if (half()) {
    const Half* from = halves_of(parcel.bytes);
    for (const Piece& piece : parcel.pieces) {
      add_halves(unit_of(parcel.bytes), from, piece.elements.size(), piece.values());
      from += piece.elements.size();
    }
    return;
  }
  const auto* from = reinterpret_cast<const T*>(parcel.bytes.data());
  for (const Piece& piece : parcel.pieces) {
    std::copy_n(from, piece.elements.size(), piece.values());
    from += piece.elements.size();
  }
}

template <class T>
void ParameterBucket<T>::start_share(BulkTransfers& transfers) {
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
void ParameterBucket<T>::finish_share(BulkTransfers& transfers) {
  transfers.wait(batch_);
  for (const Parcel& parcel : owners_) {
    take_values(parcel);
  }
}

template <class T>
void ParameterBucket<T>::forget_remainders() {
  std::fill_n(value_remainders_.data(), value_remainders_.size(), T{});
  std::fill_n(gradient_remainders_.data(), gradient_remainders_.size(), T{});
}

template <class T>
Index ParameterBucket<T>::bytes() const {
  Index bytes = changes_.bytes() + value_remainders_.bytes() + gradient_remainders_.bytes();
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
