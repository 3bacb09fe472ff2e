// How the cells of a detector's heads get the objects of an image where these are assigned by what
// all of them say (detection/object_assignment.h): what candidate cells say goes to the rank that
// assigns the objects of their image (partitioner/plan/assigned_images.h), and the number of the
// object that each has got comes back. Both ends know from the objects which cells these are.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/comm/communicator.h"
#include "engine/detection/head.h"
#include "engine/execution/activation_memory.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

template <class T>
class ObjectExchange {
 public:
  // All must outlive it.
  ObjectExchange(const partitioner::Network& network,
                 const partitioner::Plan& plan,
                 const Communicator& communicator,
                 ActivationMemory<T>& memory);

  // The plan of the next pass, in which ranks may have other images. No messages are under way.
  void set_plan(const partitioner::Plan& plan);

  // Once per pass and head, in this order on all ranks; assign() in between. Images without
  // targets, or all where there are none, have no candidates.
  void start_candidates(int layer, const Targets* targets);
  void finish_candidates(int layer);
  void assign(const Targets* targets);
  void start_assignments(int layer);
  void finish_assignments(int layer);

  // After the last of these; null where the layer is no head of this kind.
  [[nodiscard]] const HeadAssignment* assigned(int layer) const;

  // The size of buffers for messages.
  [[nodiscard]] Index bytes() const;

 private:
  // What goes to, or comes from, another rank, of the cells of one of both.
  struct Parcel {
    int peer = 0;
    Region cells;
    std::vector<std::vector<AssignedCell>> images = {};  // of `cells`: its candidates
    Array<T> values = {};                                // of these, each with all channels
    Array<std::int32_t> objects = {};
    Index count = 0;  // of candidates in this pass
  };
  struct Head {
    int layer = 0;
    HeadSite site;
    Region owned;
    HeadAssignment mine;  // by image of the pass
    std::vector<Parcel> outgoing;
    std::vector<Parcel> incoming;
    int candidates_tag = 0;
    int assignments_tag = 0;
    Requests requests;
  };

  [[nodiscard]] Head& head(int layer);
  void find_candidates(const Head& head, const Targets* targets, Parcel& parcel) const;
  void assign_image(Index image, const std::vector<TargetBox>& boxes);

  const partitioner::Network* network_;
  const Communicator* communicator_;
  ActivationMemory<T>* memory_;
  std::vector<Head> heads_;
  std::vector<Range> assigns_;  // images
};

}  // namespace tessera::engine
