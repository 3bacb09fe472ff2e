#include "engine/data/sets/cifar.h"

#include <fmt/format.h>
#include <system_error>

#include "engine/data/text/class_names.h"
#include "engine/data/text/read_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr partitioner::MapShape kShape{3, 32, 32};
constexpr Index kMostCifarBytes = Index{1} << 30;

struct CifarKind {
  int classes;
  Index label_bytes;  // the last of them is the class
  std::vector<const char*> training_files;
  const char* test_file;
  const char* name_file;
};

CifarKind cifar10() {
  return {10,
          1,
          {"data_batch_1.bin",
           "data_batch_2.bin",
           "data_batch_3.bin",
           "data_batch_4.bin",
           "data_batch_5.bin"},
          "test_batch.bin",
          "batches.meta.txt"};
}

CifarKind cifar100() {
  return {100, 2, {"train.bin"}, "test.bin", "fine_label_names.txt"};
}

bool is_cifar10(const fs::path& folder) {
  return is_file(folder / "data_batch_1.bin") || is_file(folder / "test_batch.bin");
}

bool is_cifar100(const fs::path& folder) {
  return is_file(folder / "train.bin") || is_file(folder / "test.bin");
}

void append_records(const fs::path& path, const CifarKind& kind, BytePictures& pictures) {
  if (!is_file(path)) {
    throw InputError(
        path.string(), 0, "this file of the CIFAR data set is missing: unpack the data set again");
  }
  const std::vector<std::uint8_t> bytes = read_bytes(path, kMostCifarBytes);
  const Index record = kind.label_bytes + kShape.volume();
  const Index size = static_cast<Index>(bytes.size());
  if (size == 0 || size % record != 0) {
    throw InputError(
        path.string(),
        0,
        fmt::format(
            "this file has {} bytes; expected records of {} bytes: unpack the data set again",
            size,
            record));
  }
  for (Index at = 0; at < size; at += record) {
    const std::uint8_t label = bytes[static_cast<std::size_t>(at + kind.label_bytes - 1)];
    if (label >= kind.classes) {
      throw InputError(
          path.string(),
          0,
          fmt::format(
              "picture {} has label {}; expected labels below {}: unpack the data set again",
              at / record,
              label,
              kind.classes));
    }
    pictures.labels.push_back(label);
    const auto pixels = bytes.begin() + static_cast<std::ptrdiff_t>(at + kind.label_bytes);
    pictures.pixels.insert(
        pictures.pixels.end(), pixels, pixels + static_cast<std::ptrdiff_t>(kShape.volume()));
  }
}

std::vector<std::string> names_in(const fs::path& path, int classes) {
  if (!is_file(path)) {
    return numbered_names(classes);
  }
  std::vector<std::string> names = read_class_names(path);
  if (static_cast<int>(names.size()) != classes) {
    throw InputError(path.string(),
                     0,
                     fmt::format("this file has {} names, expected {}: unpack the data set again",
                                 names.size(),
                                 classes));
  }
  return names;
}

}  // namespace

fs::path find_cifar(const fs::path& folder) {
  for (const fs::path& candidate :
       {folder, folder / "cifar-10-batches-bin", folder / "cifar-100-binary"}) {
    if (is_cifar10(candidate) || is_cifar100(candidate)) {
      return candidate;
    }
  }
  return {};
}

BytePictures open_cifar(const fs::path& folder, bool training) {
  const CifarKind kind = is_cifar10(folder) ? cifar10() : cifar100();
  BytePictures pictures{kShape, {}, {}, names_in(folder / kind.name_file, kind.classes)};
  if (!training) {
    append_records(folder / kind.test_file, kind, pictures);
    return pictures;
  }
  for (const char* name : kind.training_files) {
    append_records(folder / name, kind, pictures);
  }
  return pictures;
}

}  // namespace tessera::engine
