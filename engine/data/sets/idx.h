// The IDX format of the MNIST family, gzipped or not (http://yann.lecun.com/exdb/mnist): two zero
// bytes, the type (8: unsigned bytes), the number of sizes, each size as four bytes, high byte
// first, then the values.
//
// Files are found by name: train or t10k, "-images" or "-labels", "-idx3-ubyte" or "-idx1-ubyte"
// (".idx" does too), with or without ".gz". A file labels.txt or classes.txt beside them, a name a
// line, names the classes.

#pragma once

#include <filesystem>
#include <optional>

#include "engine/data/pictures/byte_pictures.h"

namespace tessera::engine {

// Whether `folder` holds such files, going by the names of the training or the test pictures.
[[nodiscard]] bool has_idx_files(const std::filesystem::path& folder);

// The training or the test pictures of such a folder. There are as many classes as labels.txt says
// or, without it, as the labels of both halves use. Throws InputError where a file is missing,
// damaged or says what cannot be.
[[nodiscard]] BytePictures open_idx(const std::filesystem::path& folder, bool training);

// The pictures of one file, without labels.
[[nodiscard]] BytePictures read_idx_pictures(const std::filesystem::path& file);

// Whether the file starts as an IDX file of pictures does, gzipped or not.
[[nodiscard]] bool is_idx_pictures(const std::filesystem::path& file);

}  // namespace tessera::engine
