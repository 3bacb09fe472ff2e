#include <filesystem>
#include <string>

#include "tests/fuzz/box_laws.h"
#include "tests/fuzz/harness.h"

#include "engine/data/sets/box_sets.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

bool fuzz_data_yaml(Bytes bytes) {
  const std::filesystem::path folder = fuzz_folder("data_yaml");
  std::filesystem::create_directories(folder / "images");
  std::filesystem::create_directories(folder / "labels");
  for (const char* name : {"images/a.png", "images/b.png", "labels/a.txt", "labels/b.txt"}) {
    (void)fuzz_file(std::string("data_yaml/") + name, {});
  }
  const std::filesystem::path file = fuzz_file("data_yaml/data.yaml", bytes);
  try {
    bool usable = true;
    for (const bool training : {true, false}) {
      const engine::PictureFiles files = engine::open_data_yaml(file, training);
      law(!files.class_names.empty(), "there are classes");
      law(files.boxes && files.boxes->size() == files.paths.size(), "each picture has its boxes");
      for (Index item = 0; item < files.paths.size(); ++item) {
        check_boxes((*files.boxes)[item], static_cast<int>(files.class_names.size()));
      }
      usable = usable && is_usable(files.problems);
    }
    return usable;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
