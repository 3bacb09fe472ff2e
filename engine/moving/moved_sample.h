// A sample on its way from one device to another: what both ends know of it, its bytes, and how
// samples are put together to files.
//
// The bytes of a picture file are those of the file. Those of a picture that is held as bytes (IDX,
// CIFAR) are its class number, one byte, and its pixels, (C, H, W): as in a record of CIFAR-10.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace tessera::engine {

struct MovedSample {
  Index item = 0;  // in the data set of the sender
  Index bytes = 0;
  int label = 0;          // class number, the same on all ranks
  std::string name = {};  // of its file, without folders; empty: it is held as bytes
  friend bool operator==(const MovedSample&, const MovedSample&) = default;
};

// Describes an item of the sender's. Throws InputError where its file is not there.
[[nodiscard]] MovedSample moved_sample(const Dataset& dataset, Index item);

// Assigns `out`, sample.bytes of them. Throws InputError where they cannot be read or have changed.
void read_sample(const Dataset& dataset, const MovedSample& sample, std::span<std::byte> out);

// XXH3 of 64 bits, never 0.
[[nodiscard]] std::uint64_t checksum(std::span<const std::byte> bytes);

// As they travel.
[[nodiscard]] std::vector<std::byte> packed(const std::vector<MovedSample>& samples);
[[nodiscard]] std::vector<MovedSample> unpacked(std::span<const std::byte> bytes);

// Samples [begin, end) of a list that make up one file of the receiver's: one picture file, or some
// hundred KiB of pictures held as bytes.
struct MovedFile {
  std::size_t begin = 0;
  std::size_t end = 0;
  Index bytes = 0;
  friend bool operator==(const MovedFile&, const MovedFile&) = default;
};
[[nodiscard]] std::vector<MovedFile> moved_files(const std::vector<MovedSample>& samples);

}  // namespace tessera::engine
