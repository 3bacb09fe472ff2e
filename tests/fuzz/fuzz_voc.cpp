#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/box_laws.h"
#include "tests/fuzz/harness.h"

namespace tessera::tests {

bool fuzz_voc(Bytes bytes) {
  const std::string file = fuzz_file("annotation.xml", bytes);
  const engine::VocAnnotation annotation = engine::read_voc_annotation(file);
  std::set<std::string> names;
  for (const engine::VocObject& object : annotation.objects) {
    law(annotation.width > 0 && annotation.height > 0, "objects lie on a picture");
    law(!object.name.empty(), "an object has a name");
    names.insert(object.name);
  }
  const engine::ReadBoxes all =
      boxes_of_voc(annotation, engine::numbers_of({names.begin(), names.end()}), file);
  check_read_boxes(all, static_cast<int>(names.size()));
  const engine::ReadBoxes some = boxes_of_voc(annotation, {{"dog", 0}}, file);
  check_read_boxes(some, 1);
  law(some.boxes.size() <= all.boxes.size(), "fewer classes have no more boxes");
  return is_usable(all.problems);
}

}  // namespace tessera::tests
