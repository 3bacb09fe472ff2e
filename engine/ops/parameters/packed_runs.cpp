#include "engine/ops/parameters/packed_runs.h"

#include <cstring>

#include "engine/ops/parameters/compressed_run.h"
#include "engine/ops/parameters/half.h"

namespace tessera::engine {

using partitioner::Compression;

namespace {

template <class T>
Index count_of(const ElementValues<T>& run) {
  return static_cast<Index>(run.values.size());
}

template <class T>
std::size_t bytes_of_run(const Compression& compression, const ElementValues<T>& run) {
  return static_cast<std::size_t>(
      packed_bytes(compression, {count_of(run), run.row}, static_cast<Index>(sizeof(T))));
}

// All in 16 bits, with one unit for the message.
template <class T>
void pack_halves(const std::vector<ElementValues<T>>& runs, const PackedRuns<std::byte>& to) {
  float largest = 0;
  for (const ElementValues<T>& run : runs) {
    largest = largest_magnitude(run.values.data(), count_of(run), largest);
  }
  const float unit = half_unit(largest);
  std::memcpy(to.head.data(), &unit, sizeof(unit));
  auto* halves = reinterpret_cast<Half*>(to.runs.data());
  for (const ElementValues<T>& run : runs) {
    round_to_halves(unit, count_of(run), run.values.data(), halves);
    halves += count_of(run);
  }
}

template <class T>
void add_packed_halves(const PackedRuns<const std::byte>& from,
                       const std::vector<ElementValues<T>>& runs) {
  float unit = 1;
  std::memcpy(&unit, from.head.data(), sizeof(unit));
  const auto* halves = reinterpret_cast<const Half*>(from.runs.data());
  for (const ElementValues<T>& run : runs) {
    add_halves(unit, halves, count_of(run), run.values.data());
    halves += count_of(run);
  }
}

}  // namespace

template <class T>
void pack_runs(const Compression& compression,
               const std::vector<ElementValues<T>>& runs,
               const PackedRuns<std::byte>& to) {
  if (compression == Compression::Half) {
    pack_halves(runs, to);
    return;
  }
  std::span<std::byte> rest = to.runs;
  for (const ElementValues<T>& run : runs) {
    const std::size_t bytes = bytes_of_run(compression, run);
    pack_run(compression, run.row, run.values, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
}

template <class T>
void add_packed_runs(const Compression& compression,
                     const PackedRuns<const std::byte>& from,
                     const std::vector<ElementValues<T>>& runs) {
  if (compression == Compression::Half) {
    add_packed_halves(from, runs);
    return;
  }
  std::span<const std::byte> rest = from.runs;
  for (const ElementValues<T>& run : runs) {
    const std::size_t bytes = bytes_of_run(compression, run);
    add_packed_run(compression, run.row, rest.first(bytes), run.values);
    rest = rest.subspan(bytes);
  }
}

template void pack_runs(const Compression&,
                        const std::vector<ElementValues<float>>&,
                        const PackedRuns<std::byte>&);
template void pack_runs(const Compression&,
                        const std::vector<ElementValues<double>>&,
                        const PackedRuns<std::byte>&);
template void add_packed_runs(const Compression&,
                              const PackedRuns<const std::byte>&,
                              const std::vector<ElementValues<float>>&);
template void add_packed_runs(const Compression&,
                              const PackedRuns<const std::byte>&,
                              const std::vector<ElementValues<double>>&);

}  // namespace tessera::engine
