// What `predict` says of the objects that a detector finds on a picture, and how it draws them.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/augment.h"
#include "engine/data/captioned_picture.h"
#include "engine/detection/detections.h"
#include "engine/train/detection_metrics.h"

namespace tessera::engine {

// With the name of its class.
struct FoundObject : Detection {
  FoundObject(std::string class_name, const Detection& found)
      : Detection(found), name(std::move(class_name)) {}
  std::string name;
};

// From the outputs of all heads for one image; the best first. Boxes are in fractions of the
// network's input.
[[nodiscard]] std::vector<FoundObject> found_objects(
    const std::vector<HeadSite>& heads,
    const std::vector<std::span<const float>>& outputs,
    double least_score,
    const std::vector<std::string>& names);

// The object with the highest score, whatever a user asks for; nothing where no score is as high as
// any that tests look at.
[[nodiscard]] std::optional<FoundObject> best_object(
    const std::vector<HeadSite>& heads,
    const std::vector<std::span<const float>>& outputs,
    const std::vector<std::string>& names);

// Changes boxes from fractions of the input to those of the picture, which need not fill the input.
void place_on_picture(std::vector<FoundObject>& objects,
                      const partitioner::MapShape& picture,
                      const RenderingRules& rules);

// To be drawn in this order, the best on top.
[[nodiscard]] std::vector<LabelledBox> labelled_boxes(const std::vector<FoundObject>& objects);

// The line that says in which file a picture is drawn; nothing where it is in none.
[[nodiscard]] std::string drawn_line(const std::string& file);

// Class, centre, width and height are as Darknet's label texts have them. The JSON is one line.
// `best` is what there would have been where there are no objects.
[[nodiscard]] std::string objects_text(const std::string& picture,
                                       const std::vector<FoundObject>& objects,
                                       const std::optional<FoundObject>& best,
                                       const std::string& drawn);
[[nodiscard]] std::string objects_json(const std::string& picture,
                                       const std::vector<FoundObject>& objects,
                                       const std::optional<FoundObject>& best,
                                       const std::string& drawn);

}  // namespace tessera::engine
