#include "engine/comm/exchange.h"

#include <utility>

#include "engine/comm/tags.h"

namespace tessera::engine {

using partitioner::Message;

template <class T>
Exchange<T>::Exchange(const Communicator& communicator,
                      const std::vector<Message>& messages,
                      int tag,
                      BulkTransfers* transfers)
    : communicator_(&communicator),
      tag_(tag),
      transfers_(transfers != nullptr && transfers->progresses() ? transfers : nullptr) {
  const int rank = communicator.rank();
  for (const Message& message : messages) {
    const auto parcel = [&](int peer) {
      const Region& cells = message.payload.cells();
      return Parcel{peer, cells, Array<T>(cells.volume())};
    };
    if (message.to == rank && message.from == rank) {
      local_.push_back(parcel(rank));
    } else if (message.to == rank) {
      incoming_.push_back(parcel(message.from));
    } else if (message.from == rank) {
      outgoing_.push_back(parcel(message.to));
    }
  }
}

template <class T>
void Exchange<T>::begin() {
  finish_sends();  // of parcels that are about to be filled
  is_started_ = true;
  if (transfers_ != nullptr && (!incoming_.empty() || !outgoing_.empty())) {
    progress_.emplace(*transfers_);
  }
}

template <class T>
void Exchange<T>::end() {
  is_started_ = false;
  if (progress_) {
    progress_sends();
  } else {
    finish_sends();
  }
}

template <class T>
void Exchange<T>::progress_sends() {
  if (progress_ && !is_started_ && sends_.all_done()) {
    progress_.reset();
  }
}

template <class T>
void Exchange<T>::finish_sends() {
  sends_.wait_all();
  progress_.reset();
}

template <class T>
void Exchange<T>::start_copy(View<const T> owned) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::maps_s);
  begin();
  for (Parcel& parcel : incoming_) {
    communicator_->post_receive(
        receives_, parcel.peer, tag_, bytes_of(parcel.cells.data(), parcel.cells.size()));
  }
  for (Parcel& parcel : outgoing_) {
    copy_out(owned, parcel.region, parcel.cells.data());
    communicator_->post_send(sends_,
                             parcel.peer,
                             tag_,
                             bytes_of(std::as_const(parcel.cells).data(), parcel.cells.size()));
  }
  for (Parcel& parcel : local_) {
    copy_out(owned, parcel.region, parcel.cells.data());
  }
}

template <class T>
void Exchange<T>::finish_copy(View<T> required) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::maps_s);
  for (Parcel& parcel : local_) {
    copy_in(std::as_const(parcel.cells).data(), parcel.region, required);
  }
  for (int i = receives_.wait_any(); i >= 0; i = receives_.wait_any()) {
    const Parcel& parcel = incoming_[static_cast<std::size_t>(i)];
    copy_in(parcel.cells.data(), parcel.region, required);
  }
  end();
}

template <class T>
void Exchange<T>::start_add(View<T> required) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::maps_s);
  begin();
  const int tag = tag_ + 1;
  for (Parcel& parcel : outgoing_) {
    communicator_->post_receive(
        receives_, parcel.peer, tag, bytes_of(parcel.cells.data(), parcel.cells.size()));
  }
  const auto pack = [&](Parcel& parcel) {
    copy_out(View<const T>(required), parcel.region, parcel.cells.data());
    set_zero(required, parcel.region);
  };
  for (Parcel& parcel : incoming_) {
    pack(parcel);
    communicator_->post_send(sends_,
                             parcel.peer,
                             tag,
                             bytes_of(std::as_const(parcel.cells).data(), parcel.cells.size()));
  }
  for (Parcel& parcel : local_) {
    pack(parcel);
  }
}

template <class T>
void Exchange<T>::finish_add(View<T> owned) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::maps_s);
  receives_.wait_all();
  const int rank = communicator_->rank();
  bool local_added = false;
  const auto add_local = [&] {
    for (const Parcel& parcel : local_) {
      add_in(parcel.cells.data(), parcel.region, owned);
    }
    local_added = true;
  };
  for (const Parcel& parcel : outgoing_) {
    if (parcel.peer > rank && !local_added) {
      add_local();
    }
    add_in(parcel.cells.data(), parcel.region, owned);
  }
  if (!local_added) {
    add_local();
  }
  end();
}

template <class T>
Index Exchange<T>::bytes() const {
  Index bytes = 0;
  for (const auto* parcels : {&incoming_, &outgoing_, &local_}) {
    for (const Parcel& parcel : *parcels) {
      bytes += parcel.cells.bytes();
    }
  }
  return bytes;
}

template <class T>
void regrid(const Communicator& communicator,
            const std::vector<Message>& messages,
            View<const T> owned,
            View<T> required) {
  Exchange<T> exchange(communicator, messages, kRegridTag);
  exchange.start_copy(owned);
  exchange.finish_copy(required);
}

template class Exchange<float>;
template class Exchange<double>;
template void regrid<float>(const Communicator&,
                            const std::vector<Message>&,
                            View<const float>,
                            View<float>);
template void regrid<double>(const Communicator&,
                             const std::vector<Message>&,
                             View<const double>,
                             View<double>);

}  // namespace tessera::engine
