#include "engine/cli/found_objects.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/data/box_placement.h"
#include "engine/train/classification_report.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

UnitBox box_on_picture(const UnitBox& box,
                       const Augmentation& augmentation,
                       const partitioner::MapShape& picture,
                       const RenderingRules& rules) {
  const auto place = [&](double x, double y) {
    return place_on_picture({x, y}, augmentation, picture, rules);
  };
  const PicturePlace from = place(box.x - box.width / 2, box.y - box.height / 2);
  const PicturePlace to = place(box.x + box.width / 2, box.y + box.height / 2);
  return {(from.x + to.x) / 2, (from.y + to.y) / 2, to.x - from.x, to.y - from.y};
}

}  // namespace

std::vector<FoundObject> found_objects(const std::vector<HeadSite>& heads,
                                       const std::vector<std::span<const float>>& outputs,
                                       double least_score,
                                       const std::vector<std::string>& names) {
  std::vector<FoundObject> objects;
  for (const Detection& found : detections(heads, outputs, {.least_score = least_score})) {
    objects.push_back({class_name(names, static_cast<std::size_t>(found.label)), found});
  }
  return objects;
}

std::optional<FoundObject> best_object(const std::vector<HeadSite>& heads,
                                       const std::vector<std::span<const float>>& outputs,
                                       const std::vector<std::string>& names) {
  std::vector<Detection> found;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    add_boxes_of_head(heads[i], outputs[i], kLeastTestedScore, found);
  }
  const auto best = std::max_element(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  return best == found.end()
             ? std::nullopt
             : std::optional<FoundObject>(
                   {class_name(names, static_cast<std::size_t>(best->label)), *best});
}

void place_on_picture(std::vector<FoundObject>& objects,
                      const partitioner::MapShape& picture,
                      const RenderingRules& rules) {
  for (FoundObject& object : objects) {
    object.box = box_on_picture(object.box, whole_picture(rules, picture), picture, rules);
  }
}

std::vector<LabelledBox> labelled_boxes(const std::vector<FoundObject>& objects) {
  // Easy to tell apart, also for people who do not see red or green (Okabe and Ito 2008).
  static constexpr std::array<Colour, 7> kColours{{{230, 159, 0},
                                                   {86, 180, 233},
                                                   {0, 158, 115},
                                                   {240, 228, 66},
                                                   {0, 114, 178},
                                                   {213, 94, 0},
                                                   {204, 121, 167}}};
  std::vector<LabelledBox> boxes;
  for (auto object = objects.rbegin(); object != objects.rend(); ++object) {
    const UnitBox& box = object->box;
    boxes.push_back({box.x - box.width / 2,
                     box.y - box.height / 2,
                     box.x + box.width / 2,
                     box.y + box.height / 2,
                     fmt::format("{} {:.0f} %", object->name, 100 * object->score),
                     kColours[static_cast<std::size_t>(object->label) % kColours.size()]});
  }
  return boxes;
}

std::string drawn_line(const std::string& file) {
  return file.empty() ? "" : fmt::format("  drawn in {}\n", printable(file));
}

std::string objects_text(const std::string& picture,
                         const std::vector<FoundObject>& objects,
                         const std::optional<FoundObject>& best,
                         const std::string& drawn) {
  std::string text = fmt::format("{}\n", printable(picture));
  if (objects.empty()) {
    text += best ? fmt::format("  nothing (best score {:.2f} %, {})\n",
                               100 * best->score,
                               printable(best->name))
                 : fmt::format("  nothing (no score of {} %)\n", 100 * kLeastTestedScore);
  }
  for (const FoundObject& object : objects) {
    text += fmt::format("  {:6.2f} %  {}  {} {:.4f} {:.4f} {:.4f} {:.4f}\n",
                        100 * object.score,
                        printable(object.name),
                        object.label,
                        object.box.x,
                        object.box.y,
                        object.box.width,
                        object.box.height);
  }
  return text + drawn_line(drawn);
}

std::string objects_json(const std::string& picture,
                         const std::vector<FoundObject>& objects,
                         const std::optional<FoundObject>& best,
                         const std::string& drawn) {
  nlohmann::ordered_json json{{"picture", picture}, {"objects", nlohmann::ordered_json::array()}};
  for (const FoundObject& object : objects) {
    json["objects"].push_back(
        {{"class", object.label},
         {"name", object.name},
         {"score", object.score},
         {"box", {object.box.x, object.box.y, object.box.width, object.box.height}}});
  }
  if (objects.empty()) {
    json["best_score"] = best ? nlohmann::ordered_json(best->score) : nlohmann::ordered_json();
  }
  if (!drawn.empty()) {
    json["drawn"] = drawn;
  }
  return json_text(json) + "\n";
}

}  // namespace tessera::engine
