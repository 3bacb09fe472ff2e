// Files in the format of COCO (cocodataset.org/#format-data, format-results): the objects on a set
// of images, and what a detector found on them. Boxes are in pixels, from the left upper corner of
// the image.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/pixel_box.h"

namespace tessera::engine {

struct CocoImage {
  Index id = 0;
  std::string file;  // empty where it is not said
  double width = 0;  // 0 where they are not said
  double height = 0;
};

struct CocoCategory {
  Index id = 0;
  std::string name;
};

struct CocoSet {
  std::vector<CocoImage> images;         // ids differ
  std::vector<CocoCategory> categories;  // likewise
  std::vector<TrueBox> objects;          // images and labels are places in these lists
};

// Each throws InputError with the file, and the place in it, where something is not as the format
// has it.
[[nodiscard]] CocoSet read_coco_set(const std::filesystem::path& path);
// Findings of categories that the set does not have are left out; one on another image is an error.
[[nodiscard]] std::vector<FoundBox> read_coco_findings(const std::filesystem::path& path,
                                                       const CocoSet& set);

}  // namespace tessera::engine
