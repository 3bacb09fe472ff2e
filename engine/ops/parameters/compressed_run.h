// A run of elements of one tensor in fewer bytes, as partitioner/partition/compression.h has them:
// the largest of them with their places, signs, or factors of low rank. The same bits go in and out
// on any machine of the same vector width; all that is sent is in single precision.

#pragma once

#include <cstddef>
#include <span>

#include "partitioner/partition/compression.h"

namespace tessera::engine {

// Packs `values` into packed_bytes() of them, and leaves what is not sent: values = values - sent.
// Requires compression.by_runs(); `row` is that of ElementRun.
template <class T>
void pack_run(const partitioner::Compression& compression,
              Index row,
              std::span<T> values,
              std::span<std::byte> to);

// values += what was packed
template <class T>
void add_packed_run(const partitioner::Compression& compression,
                    Index row,
                    std::span<const std::byte> from,
                    std::span<T> values);

}  // namespace tessera::engine
