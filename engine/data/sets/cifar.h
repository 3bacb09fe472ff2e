// CIFAR-10 and CIFAR-100 in their binary form (https://www.cs.toronto.edu/~kriz/cifar.html):
// records of one label byte (CIFAR-100: coarse, then fine; the fine one is taken) and 3072 bytes,
// (3, 32, 32).
//
// CIFAR-10: data_batch_1.bin to data_batch_5.bin, test_batch.bin, names in batches.meta.txt.
// CIFAR-100: train.bin, test.bin, names in fine_label_names.txt. Without the file of names, classes
// are called by their numbers.

#pragma once

#include <filesystem>

#include "engine/data/pictures/byte_pictures.h"

namespace tessera::engine {

// Where `folder`, or the cifar-10-batches-bin or cifar-100-binary in it, holds such files: there.
// Empty otherwise.
[[nodiscard]] std::filesystem::path find_cifar(const std::filesystem::path& folder);

// The training or the test pictures of the folder that find_cifar gave. Throws InputError where a
// file is missing, is not made of whole records or has a label that there is no class for.
[[nodiscard]] BytePictures open_cifar(const std::filesystem::path& folder, bool training);

}  // namespace tessera::engine
