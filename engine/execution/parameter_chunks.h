// A parameter tensor, or something laid out like it, on its way to rank 0 and back: a chunk at a
// time, so that the memory for it is the same however large the tensor is. Pieces leave from where
// elements lie and arrive where they are to lie; what rank 0 has itself is not copied.
//
// Elements count in the whole tensor, as in ParameterPlan.

#pragma once

#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/comm/communicator.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

// Elements that travel at once: half a MiB in single precision, too little to plan for, and enough
// that the wait for a message to begin is short beside the message.
inline constexpr Index kChunkElements = Index{1} << 17U;

// Elements that lie one after another in an array of one rank.
struct PlacedRun {
  int rank = 0;
  Range elements;
  Index at = 0;  // of the first, in the array

  friend bool operator==(const PlacedRun&, const PlacedRun&) = default;
};

// Where the run has the elements `part` of the tensor, in the array of its rank.
template <class T>
[[nodiscard]] std::span<T> place_of(const PlacedRun& run, const Range& part, T* array) {
  return {array + run.at + part.begin - run.elements.begin, static_cast<std::size_t>(part.size())};
}

// Each element where it is owned, in the order of the tensor: in arrays like Parameter::values, in
// arrays of what a rank owns alone, and in those of OptimizerState. Where replicas have copies of
// the tensor, of the first one.
[[nodiscard]] std::vector<PlacedRun> owned_values(const partitioner::ParameterPlan& plan);
[[nodiscard]] std::vector<PlacedRun> owned_alone(const partitioner::ParameterPlan& plan);
[[nodiscard]] std::vector<PlacedRun> owned_states(const partitioner::ParameterPlan& plan);

// Each element wherever there is state of it, in arrays of OptimizerState; and the place there, on
// a rank, of the first of some elements that it updates, which one of its runs contains.
[[nodiscard]] std::vector<PlacedRun> all_states(const partitioner::ParameterPlan& plan);
[[nodiscard]] Index place_in_state(const partitioner::ParameterPlan& plan,
                                   int rank,
                                   const Range& elements);

// Each element wherever it is held, in arrays like Parameter::values.
[[nodiscard]] std::vector<PlacedRun> held_values(const partitioner::ParameterPlan& plan);

template <class T>
using TakeChunk = std::type_identity_t<std::function<void(std::span<const T>)>>;
template <class T>
using FillChunk = std::type_identity_t<std::function<void(Index begin, std::span<T>)>>;

// Calls take() on rank 0 with the tensor's elements, in order. `from` has each element once and is
// sorted; `mine` is this rank's array. Messages have at most `longest` elements. All ranks call
// this together.
template <class T>
void gather_chunks(const Communicator& communicator,
                   const std::vector<PlacedRun>& from,
                   const T* mine,
                   const TakeChunk<T>& take,
                   Index longest = kChunkElements);

// Calls fill() on rank 0, which assigns elements [begin, begin + size), in order and at most
// `longest` at once, and sends them to all who have a place for them. All ranks call this together.
template <class T>
void scatter_chunks(const Communicator& communicator,
                    const std::vector<PlacedRun>& to,
                    T* mine,
                    const FillChunk<T>& fill,
                    Index longest = kChunkElements);

}  // namespace tessera::engine
