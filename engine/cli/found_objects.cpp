#include "engine/cli/found_objects.h"

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/train/classification_report.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

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
