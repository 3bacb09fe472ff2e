// Whether the tensors of a file are fit for use, found out before anything is done with them: they
// are as they were written, and hold numbers that a network can have.

#pragma once

#include <string>

#include "engine/files/safetensors.h"

namespace tessera::engine {

// What the numbers of a tensor may be.
enum class Numbers { Any, Finite, FiniteNotNegative };

// Reads the whole file once, some kilobytes at a time. Throws InputError with file and tensor where
// a tensor is not what its digest says, if the file has digests, or where an F32 or F64 element is
// not what `allowed` (Numbers of a tensor's name) permits.
template <class Allowed>
void expect_sound_tensors(const SafetensorsReader& file, Allowed allowed) {
  for (const StoredTensor& tensor : file.tensors()) {
    expect_sound_tensor(file, tensor, allowed(tensor.name));
  }
}

void expect_sound_tensor(const SafetensorsReader& file,
                         const StoredTensor& tensor,
                         Numbers allowed);

// "NaN", "infinity" or a number, for messages about numbers that cannot be used.
[[nodiscard]] std::string number_text(double value);

}  // namespace tessera::engine
