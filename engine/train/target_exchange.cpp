#include "engine/train/target_exchange.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "engine/comm/tags.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::Message;

namespace {

// Describes one image of the batch.
struct Head {
  std::int32_t has_picture = 0;
  std::int32_t has_label = 0;
  std::int32_t label = 0;
  std::int32_t boxes = 0;
};

template <class Value>
void append(std::vector<std::byte>& bytes, std::span<const Value> values) {
  const auto raw = std::as_bytes(values);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Number `i` of an array of values.
template <class Value>
Value value_at(const std::vector<std::byte>& bytes, std::size_t i) {
  Value value;
  std::memcpy(&value, bytes.data() + i * sizeof(Value), sizeof(Value));
  return value;
}

Head head_of(const std::optional<ImageTargets>& image) {
  if (!image) {
    return {};
  }
  return {1,
          image->label ? 1 : 0,
          image->label.value_or(0),
          static_cast<std::int32_t>(image->boxes.size())};
}

std::size_t count_boxes(const std::vector<std::byte>& heads) {
  std::size_t boxes = 0;
  for (std::size_t i = 0; i < heads.size() / sizeof(Head); ++i) {
    boxes += static_cast<std::size_t>(value_at<Head>(heads, i).boxes);
  }
  return boxes;
}

void pack(const Targets& targets,
          const Range& images,
          std::vector<std::byte>& heads,
          std::vector<std::byte>& boxes) {
  for (Index n = images.begin; n < images.end; ++n) {
    const std::optional<ImageTargets>& image = targets[static_cast<std::size_t>(n)];
    const Head head = head_of(image);
    append(heads, std::span<const Head>(&head, 1));
    if (image) {
      append(boxes, std::span<const TargetBox>(image->boxes));
    }
  }
}

void unpack(const std::vector<std::byte>& heads,
            const std::vector<std::byte>& boxes,
            const Range& images,
            Targets& targets) {
  std::size_t next = 0;
  for (Index i = 0; i < images.size(); ++i) {
    const auto head = value_at<Head>(heads, static_cast<std::size_t>(i));
    std::optional<ImageTargets>& image = targets[static_cast<std::size_t>(images.begin + i)];
    if (head.has_picture == 0) {
      image.reset();
      continue;
    }
    ImageTargets received;
    if (head.has_label != 0) {
      received.label = head.label;
    }
    for (std::int32_t box = 0; box < head.boxes; ++box) {
      received.boxes.push_back(value_at<TargetBox>(boxes, next++));
    }
    image = std::move(received);
  }
}

}  // namespace

TargetExchange::TargetExchange(const Communicator& communicator, std::vector<Message> messages)
    : communicator_(&communicator), messages_(std::move(messages)) {}

std::vector<TargetExchange::Parcel> TargetExchange::parcels(int Message::*end) const {
  std::vector<Parcel> parcels;
  for (const Message& message : messages_) {
    if (message.*end == communicator_->rank() && message.from != message.to) {
      parcels.push_back({&message, {}, {}});
    }
  }
  return parcels;
}

void TargetExchange::send_all(std::vector<Parcel>& outgoing,
                              std::vector<Parcel>& incoming,
                              std::vector<std::byte> Parcel::*bytes) const {
  Requests requests;
  for (Parcel& parcel : incoming) {
    if (!(parcel.*bytes).empty()) {
      communicator_->post_receive(requests, parcel.message->from, kTargetsTag, parcel.*bytes);
    }
  }
  for (const Parcel& parcel : outgoing) {
    if (!(parcel.*bytes).empty()) {
      communicator_->post_send(requests, parcel.message->to, kTargetsTag, parcel.*bytes);
    }
  }
  requests.wait_all();
}

void TargetExchange::run(Targets& targets) const {
  std::vector<Parcel> outgoing = parcels(&Message::from);
  std::vector<Parcel> incoming = parcels(&Message::to);
  for (Parcel& parcel : outgoing) {
    pack(targets, parcel.message->payload.images(), parcel.heads, parcel.boxes);
  }
  for (Parcel& parcel : incoming) {
    const Index images = parcel.message->payload.images().size();
    parcel.heads.resize(static_cast<std::size_t>(images) * sizeof(Head));
  }
  send_all(outgoing, incoming, &Parcel::heads);
  for (Parcel& parcel : incoming) {
    parcel.boxes.resize(count_boxes(parcel.heads) * sizeof(TargetBox));
  }
  send_all(outgoing, incoming, &Parcel::boxes);
  for (const Parcel& parcel : incoming) {
    unpack(parcel.heads, parcel.boxes, parcel.message->payload.images(), targets);
  }
}

}  // namespace tessera::engine
