// How much memory a plan takes up on a rank, by what it is for: worked out before anything is
// allocated, from the same regions and the same layout that the engine allocates by. Bytes.

#pragma once

#include <vector>

#include "partitioner/plan/kept_parts.h"
#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

struct MemoryUse {
  Index weights = 0;    // parameters and running statistics that the rank computes with
  Index gradients = 0;  // of what is learnt
  Index optimizer = 0;  // momentum, or both averages of Adam, of what the rank updates; likewise
                        // averages over steps, also of running statistics
  Index activations =
      0;  // maps and their gradients, and pre-activations that a layer keeps for its backward pass
  Index workspace = 0;  // scratch of the kernels
  Index messages = 0;   // packed cells of everything that is sent and received, and what replicas
                        // keep to be synchronised
  Index kept = 0;       // state of the last steps, outside the processes: of the rank, and second
                        // copies of what others have
  Index pictures = 0;   // pixels that are read ahead, before they are a map
  Index decoding = 0;   // a picture file, its decoder and what it becomes, one at a time
  Index data = 0;       // data sets in memory: pictures of IDX and CIFAR, else lists of files; and
                        // what a test keeps of its pictures
  Index cache = 0;      // its share of reduced pictures that the ranks of a machine keep together
  Index program = 0;    // the process without a network or data: code, libraries, MPI

  [[nodiscard]] Index total() const {
    return of_network() + kept + decoding + data + cache + program;
  }
  [[nodiscard]] Index of_network() const {
    return weights + gradients + optimizer + activations + workspace + messages + pictures;
  }
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

// What reports call each kind, in their order.
struct MemoryKind {
  const char* name;
  Index MemoryUse::*bytes;
};
inline constexpr MemoryKind kMemoryKinds[] = {{"weights", &MemoryUse::weights},
                                              {"gradients", &MemoryUse::gradients},
                                              {"optimizer", &MemoryUse::optimizer},
                                              {"activations", &MemoryUse::activations},
                                              {"workspace", &MemoryUse::workspace},
                                              {"messages", &MemoryUse::messages},
                                              {"kept", &MemoryUse::kept},
                                              {"pictures", &MemoryUse::pictures},
                                              {"decoding", &MemoryUse::decoding},
                                              {"data", &MemoryUse::data},
                                              {"cache", &MemoryUse::cache},
                                              {"program", &MemoryUse::program}};

// Those that a table has columns of: state is kept under a supervisor only.
[[nodiscard]] std::vector<MemoryKind> memory_kinds_of(const std::vector<MemoryUse>& ranks);

// Decoding where the pictures are not known: of a photo of 12 megapixels, a file of 5 MB that is
// reduced for an input of up to 500 pixels.
inline constexpr Index kUsualDecodingBytes = Index{8} << 20U;

// Of a program's bytes: code and small objects that a rank without anything to compute has none of.
// Of this program on x86-64 it was 2 MiB.
inline constexpr Index kWorkBytes = Index{2} << 20U;

struct MemoryOptions {
  Index scalar_bytes = 4;
  bool training = true;         // false: no gradients, no optimizer
  bool image_gradient = false;  // also the gradient of the network's input
  TrainedArrays trained = {};
  StateKeeping kept = {};
  Index workspace_bytes = 0;  // the kernels know it; added as it is
  Index picture_batches = 0;  // passes of which pixels are held
  Index decoding_bytes = 0;   // of a rank that reads pictures of its own
  Index data_bytes = 0;       // of a rank that reads, whether or not it has a part of any picture
  Index cache_bytes = 0;      // likewise
  Index judging_bytes = 0;    // of rank 0, which judges what the network says in a test
  Index program_bytes = 0;    // a device's profile says it, of a rank that computes
};

// By rank. Workspace and program of each, where they are known; empty: those of `options`.
[[nodiscard]] std::vector<MemoryUse> planned_memory_of_ranks(
    const Network& network,
    const Plan& plan,
    const MemoryOptions& options,
    const std::vector<Index>& workspace_bytes,
    const std::vector<Index>& program_bytes);

// What each rank takes in that of two parts of a run in which it takes more.
[[nodiscard]] std::vector<MemoryUse> larger_of_ranks(std::vector<MemoryUse> one,
                                                     const std::vector<MemoryUse>& other);

}  // namespace tessera::partitioner
