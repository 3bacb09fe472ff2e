// Files in the format of COCO (cocodataset.org/#format-data, format-results): the objects on a set
// of images, and what a detector found on them. Boxes are in pixels, from the left upper corner of
// the image.

#pragma once

#include <filesystem>
#include <map>
#include <optional>
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

// An image or an annotation that is not as the format has it.
struct CocoFault {
  std::optional<Index> image;  // a place in the list of images, where it is known
  std::string what;            // with its place in the file
};

struct CocoSet {
  std::vector<CocoImage> images;         // ids differ
  std::vector<CocoCategory> categories;  // likewise
  std::vector<TrueBox> objects;          // images and labels are places in these lists
  std::vector<Index> annotations;        // the place of each object in the file
  std::vector<CocoFault> faults;         // of what is in none of these lists
};

// Each throws InputError with the file, and the place in it, where something else is not as the
// format has it. An area that is not a number is that of the box.
[[nodiscard]] CocoSet read_coco_set(const std::filesystem::path& path);
struct CocoFindings {
  std::vector<FoundBox> boxes;
  std::map<Index, Index> left_out;  // how many of each category that the set does not have
};
// A finding on another image than those of the set is an error.
[[nodiscard]] CocoFindings read_coco_findings(const std::filesystem::path& path,
                                              const CocoSet& set);

}  // namespace tessera::engine
