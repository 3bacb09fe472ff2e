// Runs of elements of several tensors as they travel in one message that is not exact: a head of
// packing_overhead_bytes(), then the runs one after another. See
// partitioner/partition/compression.h.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "partitioner/partition/compression.h"

namespace tessera::engine {

template <class T>
struct ElementValues {
  std::span<T> values;
  Index row = 1;  // as in ElementRun
};

// Where the packed runs go, or come from.
template <class Byte>
struct PackedRuns {
  std::span<Byte> head;
  std::span<Byte> runs;
};

// Packs what is to be sent and leaves what is not: values = values - sent.
template <class T>
void pack_runs(const partitioner::Compression& compression,
               const std::vector<ElementValues<T>>& runs,
               const PackedRuns<std::byte>& to);

// values += what was packed
template <class T>
void add_packed_runs(const partitioner::Compression& compression,
                     const PackedRuns<const std::byte>& from,
                     const std::vector<ElementValues<T>>& runs);

}  // namespace tessera::engine
