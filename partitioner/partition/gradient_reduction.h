// How gradients are added up over ranks and new values sent back: part of the decision.
//
// The parameters of consecutive layers travel together, in one message from a rank to another. Such
// a bucket is full when it holds enough bytes; its reduction begins as soon as the backward pass is
// done with all of its layers. Buckets are counted in the order in which they begin: the last
// layers first.

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "partitioner/network/network.h"
#include "partitioner/partition/compression.h"

namespace tessera::partitioner {

inline constexpr Index kSingleBytes = 4;  // of a number in single precision

// Over a wire such messages travel in chunks, a few at a time: others get between them. So many
// chunks are under way from a rank to another of `ranks`; what others wait for takes 8 ms over a
// link of 100 Mbit/s. With less the wire would stand still while nobody looks.
inline constexpr Index kChunkBytes = 16384;
[[nodiscard]] Index chunks_in_flight(int ranks);

// Who has the optimizer's state of an element and updates it. Sharded: its owner alone, which sends
// the new value to all who hold it. Replicated: all of these, to whom the owner sends the reduced
// gradient, as many bytes: more memory and arithmetic, but a lost device takes no state with it
// that others do not have. Both compute the same.
enum class OptimizerStates { Sharded, Replicated };
[[nodiscard]] const char* name_of(OptimizerStates states);
[[nodiscard]] std::optional<OptimizerStates> optimizer_states_named(std::string_view name);

struct GradientReduction {
  Index bucket_bytes = 262144;  // of whole tensors in single precision; at least a layer
  Compression compression = Compression::Exact;
  OptimizerStates optimizer = OptimizerStates::Sharded;
  friend bool operator==(const GradientReduction&, const GradientReduction&) = default;
};

struct GradientBucket {
  int first = 0;  // layers [first, last], both included; those without parameters count for nothing
  int last = 0;
  friend bool operator==(const GradientBucket&, const GradientBucket&) = default;
};

// Elements of weight, bias and scale; 0 for a layer that learns nothing.
[[nodiscard]] Index learnt_elements(const Network& network, int layer);

// All layers that learn, in buckets. The first layer of a bucket has parameters.
[[nodiscard]] std::vector<GradientBucket> gradient_buckets(
    const Network& network, const GradientReduction& gradient_reduction);

// Bytes of a message of one run of gradients or values; nothing is sent where it is empty.
[[nodiscard]] Index reduction_message_bytes(const Compression& compression,
                                            const ElementRun& run,
                                            Index scalar_bytes);

// Elements of parameters on one rank.
struct TravellingElements {
  Index shared = 0;        // owned by the rank and held by others too
  Index borrowed = 0;      // held by the rank and owned by others
  Index packed_bytes = 0;  // of the shared ones, once each
};

// What a rank keeps of them beside messages: packed changes, and what compression has left out.
[[nodiscard]] Index error_feedback_bytes(const Compression& compression,
                                         const TravellingElements& elements,
                                         Index scalar_bytes);

}  // namespace tessera::partitioner
