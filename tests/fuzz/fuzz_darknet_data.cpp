#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/fuzz/harness.h"
#include "tests/support/naive_path_labels.h"
#include "tests/support/open_dataset.h"

#include "engine/data/dataset.h"
#include "engine/data/sets/picture_files.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

namespace {

constexpr std::uint8_t kSeparator = 0x1d;
constexpr Index kMostItems = 50;  // more only take time

// The texts in this order; those that are not there are empty. Returns the .data file's path.
std::string write_texts(Bytes bytes) {
  const std::filesystem::path folder = fuzz_folder("darknet");
  for (const char* name : {"fuzz.data", "list.txt", "labels.txt", "names.txt"}) {
    const auto end = std::find(bytes.begin(), bytes.end(), kSeparator);
    const Bytes text = bytes.first(static_cast<std::size_t>(end - bytes.begin()));
    (void)fuzz_file(std::string("darknet/") + name, text);
    bytes = bytes.subspan(std::min(text.size() + 1, bytes.size()));
  }
  return folder / "fuzz.data";
}

void check_items(const engine::PictureFiles& files) {
  law(files.paths.size() > 0 || !files.problems.empty(), "a list has paths, or it is said why not");
  law(files.line_numbers.size() == files.labels.size(), "each path has a line");
  law(static_cast<Index>(files.labels.size()) == files.paths.size(), "each path has a label");
  for (const int label : files.labels) {
    law(label >= 0 && label < static_cast<int>(files.class_names.size()),
        "a label is one of the classes");
  }
  for (Index item = 0; item < std::min(files.paths.size(), kMostItems); ++item) {
    law(!files.paths[item].empty(), "no path is empty");
    (void)picture_path(files, item);
  }
}

// Where classes are called by their labels.
void check_labels(const engine::PictureFiles& files) {
  if (std::ssize(files.class_names) > kMostItems) {
    return;
  }
  const engine::PictureFiles listed = engine::list_file_pictures(files.list);
  const Index looked_at = std::min(listed.paths.size(), kMostItems);
  Index kept = 0;
  for (Index item = 0; item < looked_at; ++item) {
    const std::string_view path = listed.paths[item];
    const int expected = tests::naive_labels::class_of(std::string(path), files.class_names);
    if (expected < 0) {
      continue;
    }
    law(kept < files.paths.size() && files.paths[kept] == path,
        "a picture whose path gives a class is listed, and no other");
    law(files.labels[static_cast<std::size_t>(kept)] == expected,
        "its class is that of the label in its path");
    ++kept;
  }
  law(looked_at < listed.paths.size() || kept == files.paths.size(), "nothing else is listed");
}

// There are no pictures to be found, unless the text names one of this machine's.
void read_first(const std::string& path) {
  try {
    (void)open_dataset(path, engine::Split::Train, 3).read(0);
  } catch (const InputError&) {
  }
}

}  // namespace

bool fuzz_darknet_data(Bytes bytes) {
  const bool named = text_of(bytes).find("names") != std::string::npos;
  const std::string path = write_texts(bytes);
  try {
    for (const bool training : {true, false}) {
      const engine::PictureFiles files = engine::open_darknet_data(path, training);
      check_items(files);
      if (!named || text_of(bytes).find("labels") == std::string::npos) {
        check_labels(files);
      }
    }
    read_first(path);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
