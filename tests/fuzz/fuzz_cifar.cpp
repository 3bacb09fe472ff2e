#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/read_items.h"
#include "tests/support/open_dataset.h"

#include "engine/data/dataset.h"
#include "engine/data/sets/cifar.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

namespace {

constexpr std::size_t kPixels = std::size_t{3} * 32 * 32;

// The files of either kind, all of them with the same records.
struct CifarFiles {
  std::size_t label_bytes = 1;
  std::vector<std::string> training;
  std::string test;
  std::string names;

  [[nodiscard]] std::size_t record() const { return label_bytes + kPixels; }
};

CifarFiles cifar_files(bool fine) {
  if (fine) {
    return {2, {"train.bin"}, "test.bin", "fine_label_names.txt"};
  }
  CifarFiles files{1, {}, "test_batch.bin", "batches.meta.txt"};
  for (const char* number : {"1", "2", "3", "4", "5"}) {
    files.training.push_back(std::string("data_batch_") + number + ".bin");
  }
  return files;
}

void check_records(const engine::BytePictures& pictures, Bytes records, const CifarFiles& files) {
  const auto count = static_cast<std::size_t>(pictures.size());
  law(count * files.record() == records.size(), "each record is a picture");
  law(pictures.labels.size() == count, "each picture has a label");
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes record = records.subspan(i * files.record(), files.record());
    law(pictures.labels[i] == record[files.label_bytes - 1], "labels are those of the records");
    law(pictures.labels[i] < pictures.class_names.size(), "each label has a name");
    law(std::equal(record.begin() + static_cast<std::ptrdiff_t>(files.label_bytes),
                   record.end(),
                   pictures.pixels.begin() + static_cast<std::ptrdiff_t>(i * kPixels)),
        "pixels are those of the records");
  }
}

}  // namespace

// The choices: bit 0, CIFAR-100; bit 1, with a file of names; bit 2, the last record is filled up,
// or hardly any input would be made of whole ones.
bool fuzz_cifar(Bytes bytes) {
  constexpr std::size_t kHead = 3;
  if (bytes.size() < kHead) {
    return false;
  }
  const CifarFiles files = cifar_files((bytes[0] & 1U) != 0);
  const std::size_t length = bytes[1] + std::size_t{256} * bytes[2];
  const Bytes body = bytes.subspan(kHead);
  const Bytes names = body.first(std::min(length, body.size()));
  std::vector<std::uint8_t> records(body.begin() + static_cast<std::ptrdiff_t>(names.size()),
                                    body.end());
  if ((bytes[0] & 4U) != 0) {
    records.resize((records.size() + files.record() - 1) / files.record() * files.record());
  }
  const std::filesystem::path folder = fuzz_folder("cifar");
  (void)fuzz_file("cifar/" + files.test, records);
  for (const std::string& name : files.training) {
    (void)fuzz_file("cifar/" + name, records);
  }
  if ((bytes[0] & 2U) != 0) {
    (void)fuzz_file("cifar/" + files.names, names);
  }
  try {
    law(engine::find_cifar(folder) == folder, "a folder with such files is found");
    check_records(engine::open_cifar(folder, false), records, files);
    const engine::BytePictures training = engine::open_cifar(folder, true);
    law(training.pixels.size() ==
            files.training.size() * (records.size() / files.record()) * kPixels,
        "no training file is left out");
    read_items(open_dataset(folder, engine::Split::Train, 3));
    read_items(open_dataset(folder, engine::Split::Test, 1));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
