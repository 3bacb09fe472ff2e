#include "engine/execution/object_exchange.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/comm/tags.h"
#include "engine/detection/object_assignment.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/losses.h"
#include "partitioner/plan/assigned_images.h"
#include "partitioner/plan/transfers.h"

namespace tessera::engine {

using partitioner::Message;
using partitioner::Transfer;
using partitioner::TransferKind;

namespace {

// The candidates of some cells of an image.
std::vector<AssignedCell> candidates(const HeadSite& site,
                                     const Targets* targets,
                                     Index image,
                                     const Region& cells) {
  std::vector<AssignedCell> found;
  if (targets == nullptr || !(*targets)[static_cast<std::size_t>(image)]) {
    return found;
  }
  const auto objects = objects_to_assign(site, (*targets)[static_cast<std::size_t>(image)]->boxes);
  for (const CellPlace at : candidate_places(site, objects, cells.rows, cells.cols)) {
    found.push_back({at, kNoObject});
  }
  return found;
}

// Where the values of a candidate are, and where the number of its object goes.
struct Place {
  std::size_t head = 0;
  AssignedCell* cell = nullptr;
  std::size_t first_value = 0;
};

}  // namespace

template <class T>
ObjectExchange<T>::ObjectExchange(const partitioner::Network& network,
                                  const partitioner::Plan& plan,
                                  const Communicator& communicator,
                                  ActivationMemory<T>& memory)
    : network_(&network), communicator_(&communicator), memory_(&memory) {
  set_plan(plan);
}

template <class T>
void ObjectExchange<T>::set_plan(const partitioner::Plan& plan) {
  const int rank = communicator_->rank();
  heads_.clear();
  for (const int layer : assigned_heads(*network_)) {
    Head& head = heads_.emplace_back();
    head.layer = layer;
    head.site = head_site(*network_, layer);
    head.owned = plan.tile(layer, rank).owned;
    head.mine.resize(static_cast<std::size_t>(plan.batch));
  }
  for (const partitioner::TransferIndex i : plan.transfers.indices()) {
    const Transfer& transfer = plan.transfers[i];
    if (transfer.kind == TransferKind::Assignments) {
      head(transfer.subject).assignments_tag = kFirstExchangeTag + 2 * i.number();
    }
    if (transfer.kind != TransferKind::Candidates) {
      continue;
    }
    Head& of = head(transfer.subject);
    of.candidates_tag = kFirstExchangeTag + 2 * i.number();
    for (const Message& message : transfer.messages) {
      if (message.from != rank && message.to != rank) {
        continue;
      }
      const bool leaves = message.from == rank;
      const auto count = [&](TransferKind kind) {
        Transfer one = transfer;
        one.kind = kind;
        return message_bytes(plan, one, message.payload, 1);
      };
      Parcel parcel{leaves ? message.to : message.from, message.payload.cells()};
      parcel.values = Array<T>(count(TransferKind::Candidates));
      parcel.objects = Array<std::int32_t>(count(TransferKind::Assignments) /
                                           static_cast<Index>(sizeof(std::int32_t)));
      (leaves ? of.outgoing : of.incoming).push_back(std::move(parcel));
    }
  }
  assigns_.clear();
  for (const partitioner::AssignedImages& images : assigned_images(*network_, plan)) {
    if (images.rank == rank) {
      assigns_.push_back(images.images);
    }
  }
}

template <class T>
typename ObjectExchange<T>::Head& ObjectExchange<T>::head(int layer) {
  const auto found = std::find_if(
      heads_.begin(), heads_.end(), [layer](const Head& head) { return head.layer == layer; });
  expects(found != heads_.end(), "the layer is a head that objects are assigned to");
  return *found;
}

template <class T>
const HeadAssignment* ObjectExchange<T>::assigned(int layer) const {
  for (const Head& head : heads_) {
    if (head.layer == layer) {
      return &head.mine;
    }
  }
  return nullptr;
}

template <class T>
void ObjectExchange<T>::find_candidates(const Head& head,
                                        const Targets* targets,
                                        Parcel& parcel) const {
  parcel.images.clear();
  parcel.count = 0;
  for (Index n = parcel.cells.images.begin; n < parcel.cells.images.end; ++n) {
    parcel.images.push_back(candidates(head.site, targets, n, parcel.cells));
    parcel.count += std::ssize(parcel.images.back());
  }
}

template <class T>
void ObjectExchange<T>::start_candidates(int layer, const Targets* targets) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  Head& head = this->head(layer);
  for (auto& cells : head.mine) {
    cells.clear();
  }
  const Range images = head.owned.empty() ? Range{} : head.owned.images;
  for (Index n = images.begin; n < images.end; ++n) {
    head.mine[static_cast<std::size_t>(n)] = candidates(head.site, targets, n, head.owned);
  }
  const Index channels = head.site.map.channels;
  for (Parcel& parcel : head.incoming) {
    find_candidates(head, targets, parcel);
    if (parcel.count > 0) {
      communicator_->post_receive(head.requests,
                                  parcel.peer,
                                  head.candidates_tag,
                                  bytes_of(parcel.values.data(), parcel.count * channels));
    }
  }
  const View<const T> map = memory_->map(layer);
  for (Parcel& parcel : head.outgoing) {
    find_candidates(head, targets, parcel);
    T* value = parcel.values.data();
    for (std::size_t i = 0; i < parcel.images.size(); ++i) {
      for (const AssignedCell& cell : parcel.images[i]) {
        for (Index c = 0; c < channels; ++c) {
          *value++ = map.at(
              parcel.cells.images.begin + static_cast<Index>(i), c, cell.at.row, cell.at.col);
        }
      }
    }
    if (parcel.count > 0) {
      communicator_->post_send(
          head.requests,
          parcel.peer,
          head.candidates_tag,
          bytes_of(std::as_const(parcel.values).data(), parcel.count * channels));
    }
  }
}

template <class T>
void ObjectExchange<T>::finish_candidates(int layer) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  head(layer).requests.wait_all();
}

template <class T>
void ObjectExchange<T>::assign(const Targets* targets) {
  for (const Range& images : assigns_) {
    for (Index n = images.begin; n < images.end; ++n) {
      const auto i = static_cast<std::size_t>(n);
      if (targets != nullptr && (*targets)[i]) {
        assign_image(n, (*targets)[i]->boxes);
      }
    }
  }
}

template <class T>
void ObjectExchange<T>::assign_image(Index image, const std::vector<TargetBox>& boxes) {
  std::vector<Place> places;
  std::vector<double> values;
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    Head& head = heads_[h];
    const Index channels = head.site.map.channels;
    const View<const T> map = memory_->map(head.layer);
    for (AssignedCell& cell : head.mine[static_cast<std::size_t>(image)]) {
      places.push_back({h, &cell, values.size()});
      for (Index c = 0; c < channels; ++c) {
        values.push_back(static_cast<double>(map.at(image, c, cell.at.row, cell.at.col)));
      }
    }
    for (Parcel& parcel : head.incoming) {
      const T* value = parcel.values.data();
      for (std::size_t i = 0; i < parcel.images.size(); ++i) {
        const bool is_here = parcel.cells.images.begin + static_cast<Index>(i) == image;
        for (AssignedCell& cell : parcel.images[i]) {
          if (is_here) {
            places.push_back({h, &cell, values.size()});
            values.insert(values.end(), value, value + channels);
          }
          value += channels;
        }
      }
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.head, a.cell->at) < std::tie(b.head, b.cell->at);
  });
  std::vector<Candidate> all;
  for (const Place& place : places) {
    const HeadSite& site = heads_[place.head].site;
    all.push_back({&site,
                   place.cell->at,
                   std::span(values).subspan(place.first_value,
                                             static_cast<std::size_t>(site.map.channels))});
  }
  const std::vector<int> objects =
      assign_objects(objects_to_assign(heads_.front().site, boxes), all);
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i].cell->object = objects[i];
  }
}

template <class T>
void ObjectExchange<T>::start_assignments(int layer) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  Head& head = this->head(layer);
  for (Parcel& parcel : head.outgoing) {
    if (parcel.count > 0) {
      communicator_->post_receive(head.requests,
                                  parcel.peer,
                                  head.assignments_tag,
                                  bytes_of(parcel.objects.data(), parcel.count));
    }
  }
  for (Parcel& parcel : head.incoming) {
    std::int32_t* object = parcel.objects.data();
    for (const auto& cells : parcel.images) {
      for (const AssignedCell& cell : cells) {
        *object++ = cell.object;
      }
    }
    if (parcel.count > 0) {
      communicator_->post_send(head.requests,
                               parcel.peer,
                               head.assignments_tag,
                               bytes_of(std::as_const(parcel.objects).data(), parcel.count));
    }
  }
}

template <class T>
void ObjectExchange<T>::finish_assignments(int layer) {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::statistics_s);
  Head& head = this->head(layer);
  head.requests.wait_all();
  for (const Parcel& parcel : head.outgoing) {
    const std::int32_t* object = parcel.objects.data();
    for (std::size_t i = 0; i < parcel.images.size(); ++i) {
      const auto n = static_cast<std::size_t>(parcel.cells.images.begin) + i;
      for (AssignedCell& cell : head.mine[n]) {
        cell.object = *object++;
      }
    }
  }
}

template <class T>
Index ObjectExchange<T>::bytes() const {
  Index bytes = 0;
  for (const Head& head : heads_) {
    for (const auto* parcels : {&head.incoming, &head.outgoing}) {
      for (const Parcel& parcel : *parcels) {
        bytes += parcel.values.bytes() + parcel.objects.bytes();
      }
    }
  }
  return bytes;
}

template class ObjectExchange<float>;
template class ObjectExchange<double>;

}  // namespace tessera::engine
