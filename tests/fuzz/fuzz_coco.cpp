#include <filesystem>
#include <string>

#include "tests/fuzz/box_laws.h"
#include "tests/fuzz/harness.h"

#include "engine/data/sets/box_sets.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

bool fuzz_coco(Bytes bytes) {
  const std::filesystem::path folder = fuzz_folder("coco");
  std::filesystem::create_directories(folder / "annotations");
  (void)fuzz_file("coco/annotations/all.json", bytes);
  try {
    bool usable = true;
    for (const bool training : {true, false}) {
      const engine::PictureFiles files = engine::open_coco(folder, training);
      law(files.boxes && files.boxes->size() == files.paths.size(), "each picture has its boxes");
      for (Index item = 0; item < files.paths.size(); ++item) {
        check_boxes((*files.boxes)[item], static_cast<int>(files.class_names.size()));
      }
      usable = usable && (is_usable(files.problems) || !training);  // one picture: none to test
    }
    return usable;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
