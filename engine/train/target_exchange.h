// The targets of a batch on their way from the rank that reads pictures to those that judge what is
// made of them: a message for each image range that the plan says, and a second one where images
// have boxes.

#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/targets.h"
#include "engine/comm/communicator.h"
#include "partitioner/plan/message.h"

namespace tessera::engine {

class TargetExchange {
 public:
  // `messages` are Plan::targets, whose regions say which images.
  TargetExchange(const Communicator& communicator, std::vector<partitioner::Message> messages);

  // Assigns what others send to their places. All ranks call this together.
  void run(Targets& targets) const;

 private:
  // What one message carries, of the images of its region.
  struct Parcel {
    const partitioner::Message* message = nullptr;
    std::vector<std::byte> heads;
    std::vector<std::byte> boxes;
  };

  [[nodiscard]] std::vector<Parcel> parcels(int partitioner::Message::*end) const;
  void send_all(std::vector<Parcel>& outgoing,
                std::vector<Parcel>& incoming,
                std::vector<std::byte> Parcel::*bytes) const;

  const Communicator* communicator_;
  std::vector<partitioner::Message> messages_;
};

}  // namespace tessera::engine
